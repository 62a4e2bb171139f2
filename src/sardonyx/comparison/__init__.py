"""The same inputs through two models or two engines: do they agree (`compare`), which is faster (`bench`), and the official suite."""

"""C for a Plan: loops printed as C, contraction templates, and the compiler that builds them."""

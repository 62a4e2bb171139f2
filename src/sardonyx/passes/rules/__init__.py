"""Every rule, one family a file. To add one: write a function with `@rule`, and name it in its file's RULES."""

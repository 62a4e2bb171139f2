"""The operators' meaning in the kernel language, one file a family."""

"""The kernel language: a small closed set of statements and expressions over symbolic sizes."""

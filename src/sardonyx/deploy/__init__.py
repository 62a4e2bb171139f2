"""A model as a native artifact: a library, an archive, C sources or a program, with a plain C interface."""

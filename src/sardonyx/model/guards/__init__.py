"""May this come in? Bytes and sizes before parsing, then every rule of the specification."""

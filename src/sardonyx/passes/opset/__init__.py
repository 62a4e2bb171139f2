"""Models from one version of the default operator set to another."""

"""Hugging Face: models of transformers, as objects or local folders."""

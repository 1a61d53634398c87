"""Bytes to model and back, without input or output of its own."""

"""The commands a person runs."""

"""The state."""

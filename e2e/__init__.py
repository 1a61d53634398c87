"""A real control plane on one machine, and what is tried and shown on it."""

"""How our writes reach the API server."""

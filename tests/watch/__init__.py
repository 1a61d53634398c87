"""How objects come from the API server."""

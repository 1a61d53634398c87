"""How we find the API server and talk to it."""

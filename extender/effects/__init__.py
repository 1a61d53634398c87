"""Out: everything that is written to the API server."""

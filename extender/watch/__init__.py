"""In: the API server's objects, listed and watched, become changes of the state."""

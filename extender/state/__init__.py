"""The only mutable thing: what the cluster holds and what is reserved in it. One writer, the event loop."""

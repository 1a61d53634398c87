"""GPU cards as each system writes them on pods and nodes: a file for each."""

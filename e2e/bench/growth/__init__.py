"""How do the extender's costs grow with the cluster? In one process, without a control plane."""

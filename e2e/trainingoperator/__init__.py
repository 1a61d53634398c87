"""The real Kubeflow training operator, built from its own module, beside the control plane."""

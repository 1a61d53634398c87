"""What is installed: manifests/ and scheduler-config/."""

"""The extender verbs that kube-scheduler calls, and the health endpoints."""

"""Tests of the fault proxies and of the checker that need no control plane."""

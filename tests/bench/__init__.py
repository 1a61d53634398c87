"""Tests of the benches that need no control plane."""

"""Unit tests; they mirror the packages of `extender/`."""

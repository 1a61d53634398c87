"""Tests of what the doctor says."""

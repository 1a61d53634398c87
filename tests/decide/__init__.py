"""Decisions on frozen snapshots."""

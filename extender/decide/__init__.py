"""Pure decisions: plain functions of a snapshot that answer with data."""

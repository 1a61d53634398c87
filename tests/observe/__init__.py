"""What the log and the metrics show."""

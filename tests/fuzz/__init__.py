"""What becomes of whatever anybody writes into the cluster: junk, hostile sizes, and what belongs to others."""

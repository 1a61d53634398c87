"""What does waiting cost, and how soon is a gang whole? Measured on a real control plane, in figures to compare."""

"""What is wrong with an installation, by facts that others have gathered. Pure: no network, no clock."""

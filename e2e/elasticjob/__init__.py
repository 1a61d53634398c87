"""Stand-in for DLRover's ElasticJob operator and job master, which cannot be had here."""

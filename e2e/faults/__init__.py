"""What becomes of gangs while API server, kube-scheduler's calls, nodes, pods and plugins fail, by chance and seed?"""

"""Does our model of kube-scheduler's filters agree with the real one? Random clusters, judged by both."""

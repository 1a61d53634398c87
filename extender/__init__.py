"""A kube-scheduler extender that places the gangs of distributed training whole or not at all."""

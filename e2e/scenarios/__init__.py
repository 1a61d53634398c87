"""What the demo and the scenarios apply, as files that a person may apply, too."""

from pathlib import Path

import yaml

from e2e.client import Object

FOLDER = Path(__file__).parent


def seed_job(namespace: str, min_available: int) -> Object:
    """Return the ElasticJob of four workers that each need a GPU."""
    job = _read("seed-job.yaml", namespace)
    annotations = job["spec"]["replicaSpecs"]["worker"]["template"]["metadata"]["annotations"]
    annotations["gang.scheduling.koordinator.sh/min-available"] = min_available
    return job


def tf_job(namespace: str) -> Object:
    """Return the TFJob of one parameter server and four workers with a GPU each, all five one gang."""
    return _read("tfjob.yaml", namespace)


def pytorch_job(namespace: str) -> Object:
    """Return the PyTorchJob of a master and three workers with a GPU each, without gang metadata."""
    return _read("pytorchjob.yaml", namespace)


def pod_group_crd(group: str, version: str) -> Object:
    """Return a stand-in for the CustomResourceDefinition of a scheduler's PodGroup."""
    crd: Object = yaml.safe_load((FOLDER / "podgroup-crd.yaml").read_text(encoding="utf-8"))
    koordinator = crd["spec"]["group"]
    crd["metadata"]["name"] = f"podgroups.{group}"
    crd["spec"]["group"] = group
    crd["spec"]["versions"][0]["name"] = version
    if group != koordinator:
        crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    return crd


def _read(file_name: str, namespace: str) -> Object:
    job: Object = yaml.safe_load((FOLDER / file_name).read_text(encoding="utf-8"))
    job["metadata"]["namespace"] = namespace
    return job

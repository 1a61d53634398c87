"""Reads the YAML files that are installed."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"
HOLD = ROOT / "manifests" / "hold"
GPU_ENV = ROOT / "manifests" / "gpu-env"
HAMI = ROOT / "manifests" / "hami"
TLS = ROOT / "manifests" / "tls"
SERVICE = ROOT / "manifests" / "service"
SCHEDULER_CONFIG = ROOT / "scheduler-config"


@cache
def manifests(folder: Path = BASE) -> list[Object]:
    """Return every object of a folder of manifests/, as the files have it."""
    files = sorted(folder.glob("*.yaml"))
    return [document for file in files for document in yaml.safe_load_all(file.read_text()) if "metadata" in document]


def manifest(kind: str, name: str, folder: Path = BASE) -> Object:
    """Return the one object of this kind and name."""
    (found,) = (m for m in manifests(folder) if (m["kind"], m["metadata"]["name"]) == (kind, name))
    return found


def pod_spec() -> Object:
    """Return what the Deployment's pods are made from."""
    spec: Object = manifest("Deployment", "gang-scheduler")["spec"]["template"]["spec"]
    return spec


def container(name: str) -> Object:
    """Return this container of the Deployment, sidecars included."""
    (found,) = (c for c in [*pod_spec()["initContainers"], *pod_spec()["containers"]] if c["name"] == name)
    return dict(found)


def scheduler_config(name: str) -> Object:
    """Return this file of scheduler-config/."""
    config: Object = yaml.safe_load((SCHEDULER_CONFIG / name).read_text())
    return config


def seconds(duration: str) -> float:
    """Read a Go duration of whole seconds."""
    match = re.fullmatch(r"(\d+)s", duration)
    assert match, f"{duration} is not in whole seconds"
    return float(match[1])

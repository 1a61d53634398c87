"""An installation in which all is right, and what may be changed in it."""

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import convert

from extender.config import GangExtenderConfiguration
from extender.doctor.diagnosis import diagnose
from extender.doctor.facts import Extender, Facts, PolicyParts, Process, Scheduler
from extender.doctor.finding import Finding
from extender.doctor.installation import GPU_ENV, HOLD, READ_VERSIONS
from extender.doctor.permissions import EVERY_RIGHT
from extender.doctor.scheduler_config import SchedulerConfig, read_scheduler_config
from extender.wire.core_v1 import Pod
from tests.builders import pod_json
from tests.manifests.files import scheduler_config

Change = Callable[[dict[str, Any]], object]

NOW_S = 1_800_000_000.0
LONG_AGO = "2020-01-01T00:00:00Z"
FILE = "ConfigMap gang-extender/gang-scheduler-config, key dedicated.yaml"
IDENTITIES = {
    "extender": "system:serviceaccount:gang-extender:gang-extender",
    "scheduler": "system:serviceaccount:gang-extender:gang-scheduler",
}
AS_SHARED: dict[str, Any] = {
    "percentageOfNodesToScore": 100,
    "leaderElection": {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"},
}
"""The settings that scheduler-config/shared.yaml asks for."""
NAMES_US = 'object.spec.schedulerName == "gang-scheduler"'


def settings(**changes: Any) -> GangExtenderConfiguration:
    """Return the extender's settings."""
    kind = {"apiVersion": "gang-extender.io/v1alpha1", "kind": "GangExtenderConfiguration"}
    return GangExtenderConfiguration.model_validate(kind | changes)


@cache
def _written(file: str) -> dict[str, Any]:
    return scheduler_config(file)


def config(change: Change = lambda _: None, file: str = "dedicated.yaml") -> SchedulerConfig:
    """Return this file of scheduler-config/, changed."""
    content = copy.deepcopy(_written(file))
    change(content)
    return read_scheduler_config(json.dumps(content))


def scheduler(change: Change = lambda _: None, source: str = FILE, file: str = "dedicated.yaml") -> Scheduler:
    """Return a kube-scheduler that runs with it."""
    return Scheduler(source, config(change, file))


def process(**changes: Any) -> Process:
    """Return a pod of kube-scheduler."""
    return Process(**({"name": "pod gang-extender/gang-scheduler-1", "version": (1, 36, 3), "config": FILE} | changes))


def extender(**changes: Any) -> Extender:
    """Return an extender that is called."""
    calls = {"filter": 9, "bind": 3}
    return Extender(**({"where": "pod gang-extender/a", "ready": "", "calls": calls, "reachable": {}} | changes))


def pod(name: str = "worker-0", scheduler_name: str = "gang-scheduler", **fields: Any) -> Pod:
    """Return a pod that was made long ago and was tried; `fields` of its metadata, spec and status."""
    spec = {"schedulerName": scheduler_name} | fields.pop("spec", {})
    status = fields.pop("status", {"conditions": [{"type": "PodScheduled", "status": "False"}]})
    content = pod_json(name, spec=spec, status=status)
    content["metadata"] |= {"creationTimestamp": LONG_AGO} | fields
    return convert(content, Pod)


def facts(**changes: Any) -> Facts:
    """Return an installation of manifests/base and manifests/hold in which all is right."""
    right: dict[str, Any] = {
        "settings": settings(),
        "settings_source": "defaults",
        "identities": IDENTITIES,
        "now_s": NOW_S,
        "schedulers": (scheduler(),),
        "processes": (process(),),
        "version": (1, 36, 0),
        "rights": dict.fromkeys(EVERY_RIGHT, True),
        "served": {kind: (version,) for kind, version in READ_VERSIONS.items()},
        "policies": {
            HOLD: PolicyParts(policy=True, bound=True, text=NAMES_US),
            GPU_ENV: PolicyParts(policy=False, bound=False),
        },
        "extenders": (extender(),),
    }
    return Facts(**(right | changes))


def wired(change: Change, file: str = "dedicated.yaml") -> Facts:
    """Return the same with another KubeSchedulerConfiguration; for the shared one the extender is set as it asks."""
    own = AS_SHARED if file == "shared.yaml" else {}
    return facts(schedulers=(scheduler(change, file=file),), settings=settings(**own))


def amiss(facts: Facts) -> list[Finding]:
    """Return what is not ok."""
    return [finding for finding in diagnose(facts) if finding.level != "ok"]

"""Do the harness's kube-scheduler and extender run with the repository's own settings?"""

from pathlib import Path
from typing import Any

import yaml

from e2e.components import extender_config, gang_scheduler_config

REPOSITORY = Path(__file__).parents[2]


def test_only_addresses_are_changed_in_the_schedulers_configuration() -> None:
    original: dict[str, Any] = yaml.safe_load((REPOSITORY / "scheduler-config" / "dedicated.yaml").read_text())
    config = yaml.safe_load(gang_scheduler_config(Path("/some/kubeconfig"), "127.0.0.1:4711"))

    assert config["clientConnection"].pop("kubeconfig") == "/some/kubeconfig"
    assert {entry["urlPrefix"] for entry in config["extenders"]} == {"http://127.0.0.1:4711/v1"}
    for changed, entry in zip(config["extenders"], original["extenders"], strict=True):
        changed["urlPrefix"] = entry["urlPrefix"]
    assert config == original


def test_only_addresses_are_changed_in_the_extenders_configuration() -> None:
    original: dict[str, Any] = yaml.safe_load((REPOSITORY / "manifests" / "base" / "config.yaml").read_text())
    config = yaml.safe_load(extender_config(Path("/some/kubeconfig"), 1, 2))

    assert config.pop("kubeconfig") == "/some/kubeconfig"
    for address in ("port", "probePort", "probeAddress"):
        del config["server"][address]
    assert config == {"server": {}} | original

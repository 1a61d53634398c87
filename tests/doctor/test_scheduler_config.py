"""Is a KubeSchedulerConfiguration read in every form, and everything else refused?"""

import json

import pytest
import yaml

from extender.doctor.scheduler_config import BadSchedulerConfigError, Entry, read_scheduler_config
from tests.doctor.installations import config
from tests.manifests.files import scheduler_config


def test_what_configz_answers_is_read_as_the_file_is() -> None:
    told = json.dumps({"componentconfig": scheduler_config("dedicated.yaml")})
    assert read_scheduler_config(told) == config()


def test_without_profiles_there_is_the_default_one() -> None:
    assert read_scheduler_config("kind: KubeSchedulerConfiguration").names == ("default-scheduler",)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(None, 5), ("0s", 5), ("2s", 2), ("1m30s", 90), ("1.5s", 1.5), ("250ms", 0.25), ("1h", 3600)],
)
def test_time_outs_as_go_writes_them(written: str | None, seconds: float) -> None:
    assert Entry(http_timeout=written).timeout_s == seconds


@pytest.mark.parametrize(
    "text",
    [
        "kind: Deployment",
        "",
        "[",
        "- a",
        yaml.safe_dump_all([{"kind": "KubeSchedulerConfiguration"}] * 2),
        "kind: KubeSchedulerConfiguration\nextenders: [{weight: much}]",
        "kind: KubeSchedulerConfiguration\nextenders: [{httpTimeout: 2 seconds}]",
        "kind: KubeSchedulerConfiguration\nextenders: {}",
    ],
)
def test_what_is_no_such_file(text: str) -> None:
    with pytest.raises(BadSchedulerConfigError):
        read_scheduler_config(text)

"""Which settings does the doctor hold the cluster against?"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from extender.cli.asking import Asker, UnseenError
from extender.cli.doctor import _find_settings
from extender.doctor.finding import Unseen
from tests.manifests.files import Object, pod_spec

KIND = "apiVersion: gang-extender.io/v1alpha1\nkind: GangExtenderConfiguration\n"
OURS = "gang-extender"


class Told(Asker):
    """An API server that has these pods (None: which may not be listed), and a ConfigMap for each of these texts."""

    def __init__(self, pods: list[Object] | None, texts: dict[str, str]) -> None:
        self._pods = pods
        made = ({"name": name, "creationTimestamp": f"2026-01-0{day}T00:00:00Z"} for day, name in enumerate(texts, 1))
        self._maps = [{"metadata": each, "data": {"config.yaml": texts[each["name"]]}} for each in made]

    async def items(self, path: str, **_query: str) -> AsyncIterator[bytes]:
        found: list[Any] | None = self._pods if path.endswith("/pods") else self._maps
        if found is None:
            raise UnseenError(Unseen("we may not"))
        for each in found:
            yield json.dumps(each).encode()


TEXTS = {
    "gang-extender-config": f"{KIND}gangs: {{bindingSeconds: 40}}",
    "tried": f"{KIND}gangs: {{bindingSeconds: 90}}",
}
POD = {"metadata": {"name": "one", "namespace": OURS}, "spec": pod_spec()}


async def test_those_that_the_extender_runs_with_though_newer_ones_were_tried() -> None:
    found = await _find_settings(Told([POD], TEXTS), OURS)
    assert found.source == "ConfigMap gang-extender/gang-extender-config, key config.yaml"
    assert found.config.gangs.binding_seconds == 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("log: {level: info}\nlog: {level: debug}", "log is there twice"),
        ("log: {level: 1}", "it: log.level: Input should be 'debug', 'info', 'warning' or 'error'"),
    ],
)
async def test_those_that_the_extender_does_not_start_with_are_told(text: str, said: str) -> None:
    found = await _find_settings(Told([], {"bad": KIND + text}), OURS)
    assert found.problem
    assert said in found.problem.what


@pytest.mark.parametrize("pods", [[], None], ids=["none there", "none shown"])
async def test_the_newest_ones_where_no_extender_is_seen(pods: list[Object] | None) -> None:
    found = await _find_settings(Told(pods, TEXTS), OURS)
    assert found.source == "ConfigMap gang-extender/tried, key config.yaml"
    assert found.config.gangs.binding_seconds == 90

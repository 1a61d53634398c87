"""One fixture or more for each way in which systems declare a gang: their own objects, and what comes of them.

The files in dialects/ hold YAML documents of `objects` as the API server has them, and of the `gangs` that result: a
field that is named there is that of the resolved gang, `roles` has its members' ranks by role.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from msgspec import Raw

from extender.decide.explain import explain_problem, explain_undeclared
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.state.cluster import Cluster
from extender.wire.kube import JOBS, POD_GROUPS, PODS

FOLDER = Path(__file__).parent / "dialects"


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        for number, case in enumerate(yaml.safe_load_all(text), 1):
            yield pytest.param(case, id=f"{path.stem}-{number}")


def cluster_with(objects: list[dict[str, Any]]) -> Cluster:
    cluster = Cluster(["gang-scheduler"])
    for number, each in enumerate(objects):
        body = Raw(orjson.dumps({**each, "metadata": {"uid": f"uid-{number}", **each["metadata"]}}))
        match each["kind"]:
            case "Pod":
                cluster.upsert_pod(PODS.read(body).object)
            case "PodGroup":
                cluster.upsert_pod_group(POD_GROUPS[each["apiVersion"].split("/")[0]].read(body).object)
            case job:
                cluster.upsert_job(JOBS[job].read(body).object)
    return cluster


def field(cluster: Cluster, gang: Gang, name: str) -> object:
    match name:
        case "waiting":
            return [pod.name for pod in gang.waiting]
        case "roles":
            ranks = defaultdict(list)
            for pod in gang.waiting:
                ranks[pod.role].append(pod.rank)
            return dict(ranks)
        case "missing":
            return cluster.gangs.missing_groups(gang)
        case "problems":
            return [explain_problem(problem) for problem in gang.problems]
        case "groups":
            return list(gang.groups)
        case "role_minimums":
            return [list(each) for each in gang.role_minimums]
        case _:
            return getattr(gang, name)


@pytest.mark.parametrize("case", list(cases()))
def test_what_the_system_writes_makes_this_gang(case: dict[str, Any]) -> None:
    cluster = cluster_with(case["objects"])
    expected_gangs, expected_undeclared = case.get("gangs", {}), case.get("undeclared", {})
    assert set(cluster.gangs) == {*expected_gangs, *expected_undeclared}
    for key, expected in expected_gangs.items():
        gang = cluster.gangs.get(GangKey(key))
        assert gang is not None
        found = {name: field(cluster, gang, name) for name in {"problems": [], **expected}}
        assert found == {"problems": [], **expected}
    for key, text in expected_undeclared.items():
        undeclared = cluster.gangs.undeclared(GangKey(key))
        assert undeclared is not None
        assert explain_undeclared(GangKey(key), undeclared) == text
    assert [pod.name for pod in cluster.pods.values() if pod.gang is None] == case.get("without_gang", [])


def test_the_order_in_which_the_objects_come_makes_no_difference() -> None:
    for case in yaml.safe_load_all((FOLDER / "volcano.yaml").read_text(encoding="utf-8")):
        one_way, other_way = cluster_with(case["objects"]), cluster_with(case["objects"][::-1])
        for key in case.get("gangs", {}):
            one, other = one_way.gangs.get(GangKey(key)), other_way.gangs.get(GangKey(key))
            assert one is not None
            assert other is not None
            assert (one.min_available, one.role_minimums) == (other.min_available, other.role_minimums)

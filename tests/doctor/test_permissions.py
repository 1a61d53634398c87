"""Are the rights that are asked about those that the manifests give, and is each missed?"""

import pytest

from extender.doctor.finding import Unseen
from extender.doctor.permissions import EVERY_RIGHT, NEEDS, Part, Right, Who
from tests.doctor.installations import AS_SHARED, IDENTITIES, amiss, facts, scheduler, settings
from tests.manifests.files import BASE, HAMI, HOLD, ROOT, manifest
from tests.manifests.test_rbac import rights


@pytest.mark.parametrize(
    ("part", "role", "folder"),
    [("base", "gang-extender", BASE), ("hold", "gang-extender-hold", HOLD), ("hami", "gang-extender-hami", HAMI)],
)
def test_the_table_is_what_the_manifests_give(part: Part, role: str, folder: object) -> None:
    parts = {part, "jobs"} if part == "base" else {part}
    listed = {right for need in NEEDS if need.part in parts for right in need.rights if right.who == "extender"}
    given = {Right(group, resource, verb) for group, resource, _, verb in rights(manifest("ClusterRole", role, folder))}  # type: ignore[arg-type] # a Path
    assert listed == given


@pytest.mark.parametrize("right", [each for need in NEEDS if need.part != "hami" for each in need.rights], ids=repr)
def test_each_right_is_missed(right: Right) -> None:
    (found,) = amiss(facts(rights={**dict.fromkeys(EVERY_RIGHT, True), right: False}))
    assert found.level in {"error", "warning"}
    assert f"may not {right.said}: " in found.what
    assert found.mend.startswith("kubectl apply -f manifests/")
    assert (ROOT / found.mend.removeprefix("kubectl apply -f ")).is_file()
    assert found.where == IDENTITIES[right.who]


def test_the_right_for_a_kind_that_is_not_installed_is_no_error_yet() -> None:
    right = Right("scheduling.volcano.sh", "podgroups/status", "patch")
    denied = {**dict.fromkeys(EVERY_RIGHT, True), right: False}
    (found,) = amiss(facts(rights=denied, served={}))
    assert (found.level, found.what.endswith("once it is installed")) == ("warning", True)


def test_the_right_to_watch_a_kind_is_missed_even_where_it_is_not_installed() -> None:
    """The API server answers 403 then, not 404."""
    right = Right("scheduling.volcano.sh", "podgroups", "watch")
    denied = {**dict.fromkeys(EVERY_RIGHT, True), right: False}
    (found,) = amiss(facts(rights=denied, served={}))
    assert (found.level, "never gets ready" in found.what) == ("error", True)


def test_jobs_that_make_no_gangs_need_not_be_watched() -> None:
    denied = {right: not right.group.startswith(("kubeflow", "elastic", "train", "batch")) for right in EVERY_RIGHT}
    assert amiss(facts(rights=denied, settings=settings(gangs={"fromJobs": False}))) == []
    assert amiss(facts(rights=denied))


def test_rights_that_could_not_be_asked_about_are_not_taken_for_granted() -> None:
    found = amiss(facts(rights=dict.fromkeys(EVERY_RIGHT, Unseen("we may not create subjectaccessreviews"))))
    assert {each.level for each in found} == {"unknown"}
    assert len(found) == sum(need.part != "hami" for need in NEEDS)


@pytest.mark.parametrize(("who", "name"), [("scheduler", "gang-scheduler"), ("extender", "gang-extender")])
def test_the_lease_of_the_table_is_the_one_that_the_manifests_give(who: Who, name: str) -> None:
    role = manifest("Role", name)
    listed = {right for right in EVERY_RIGHT if right.resource == "leases" and right.who == who}
    where = role["metadata"]["namespace"]
    assert listed == {Right(group, resource, verb, who, where, name) for group, resource, name, verb in rights(role)}


@pytest.mark.parametrize("election", [{"mode": "none"}, {"mode": "sidecar", "resourceName": "kube-scheduler"}])
def test_a_lease_that_is_not_followed_need_not_be_read(election: dict[str, str]) -> None:
    denied = {right: right.resource != "leases" or right.who != "extender" for right in EVERY_RIGHT}
    found = amiss(facts(rights=denied, settings=settings(leaderElection=election)))
    assert [each for each in found if "right of the extender" in each.check] == []


def test_a_shared_kube_scheduler_has_rights_of_its_own() -> None:
    denied = {right: right.who == "extender" for right in EVERY_RIGHT}
    shared = scheduler(file="shared.yaml")
    assert amiss(facts(rights=denied, schedulers=(shared,), settings=settings(**AS_SHARED))) == []

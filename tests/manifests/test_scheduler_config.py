"""Do the kube-scheduler configurations fit the extender they call?"""

from urllib.parse import urlsplit

import pytest
from msgspec import convert

from extender.config import GangConfig, GangExtenderConfiguration, ServerConfig
from extender.effects.binding import LAST_LOOK_S
from extender.verbs.bind import POSTING_S
from extender.verbs.server import PREFIX
from extender.wire import core_v1
from extender.wire.cards.qualifiers import QUALIFIERS
from extender.wire.pod_requests import effective_requests
from tests.builders import pod_json
from tests.manifests.files import Object, scheduler_config, seconds

FILES = ("dedicated.yaml", "shared.yaml")
VERBS = ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")


def entries(file: str) -> tuple[Object, Object]:
    """Return the entry of the scheduling loop and the one of binding."""
    loop, binding, _ = scheduler_config(file)["extenders"]
    return loop, binding


@pytest.mark.parametrize("file", FILES)
def test_what_only_qualifies_a_request_for_gpus_is_ignored_by_kube_scheduler_as_by_us(file: str) -> None:
    names = scheduler_config(file)["extenders"][2]
    assert not [key for key in VERBS if key in names]
    assert {each["name"]: each["ignoredByScheduler"] for each in names["managedResources"]} == dict.fromkeys(
        QUALIFIERS, True
    )


@pytest.mark.parametrize("file", FILES)
def test_each_verb_is_asked_for_once_and_bind_has_an_entry_of_its_own(file: str) -> None:
    loop, binding = entries(file)
    assert {key: loop[key] for key in VERBS if key in loop} == {
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
    }
    assert {key: binding[key] for key in VERBS if key in binding} == {"bindVerb": "bind"}


@pytest.mark.parametrize("file", FILES)
def test_the_extender_listens_where_it_is_called(file: str) -> None:
    server = ServerConfig()
    for entry in entries(file):
        url = urlsplit(entry["urlPrefix"])
        assert (url.scheme, url.hostname, url.port, url.path) == ("http", server.address, server.port, PREFIX)


@pytest.mark.parametrize("file", FILES)
def test_a_bind_call_outlasts_the_longest_wait_for_the_gang_and_the_posting(file: str) -> None:
    _, binding = entries(file)
    assert seconds(binding["httpTimeout"]) > GangConfig().binding_seconds + POSTING_S + LAST_LOOK_S + 5


@pytest.mark.parametrize("file", FILES)
def test_a_hanging_extender_holds_the_scheduling_loop_for_two_seconds_at_most(file: str) -> None:
    loop, _ = entries(file)
    assert seconds(loop["httpTimeout"]) <= 2


@pytest.mark.parametrize("file", FILES)
def test_a_member_that_missed_its_turn_comes_several_times_while_its_room_is_held(file: str) -> None:
    assert GangConfig().binding_seconds >= 5 * scheduler_config(file)["podMaxBackoffSeconds"]


def default_settings() -> GangExtenderConfiguration:
    return GangExtenderConfiguration.model_validate(
        {"apiVersion": "gang-extender.io/v1alpha1", "kind": "GangExtenderConfiguration"}
    )


@pytest.mark.parametrize("file", FILES)
def test_no_gang_is_scheduled_without_the_extender_and_only_names_are_sent(file: str) -> None:
    assert [(entry["ignorable"], entry["nodeCacheCapable"]) for entry in entries(file)] == [(False, True)] * 2


@pytest.mark.parametrize("file", FILES)
def test_a_full_score_outweighs_the_default_plugins_together(file: str) -> None:
    """A score is counted 10 times its weight; the default plugins' weights are 14 together, of 100 points each."""
    loop, _ = entries(file)
    assert 10 * loop["weight"] * 10 > 14 * 100


def percentage(file: str) -> int:
    config = scheduler_config(file)
    (profile,) = (p for p in config["profiles"] if p["schedulerName"] == "gang-scheduler")
    found: int = {**config, **profile}["percentageOfNodesToScore"]
    return found


def test_the_extender_by_default_knows_the_sample_of_the_scheduler_of_its_own() -> None:
    assert percentage("dedicated.yaml") == default_settings().percentage_of_nodes_to_score


def test_a_shared_scheduler_looks_at_every_node_that_a_member_may_go_to() -> None:
    assert percentage("shared.yaml") == 100


@pytest.mark.parametrize("file", FILES)
def test_the_extender_by_default_serves_the_scheduler_name_that_is_configured(file: str) -> None:
    settings = default_settings()
    names = [profile["schedulerName"] for profile in scheduler_config(file)["profiles"]]
    assert set(settings.scheduler_names) <= set(names)
    assert set(names) - set(settings.scheduler_names) <= {"default-scheduler"}


def test_a_scheduler_of_its_own_sends_every_pod() -> None:
    assert not any("managedResources" in entry for entry in entries("dedicated.yaml"))


def test_a_shared_scheduler_sends_only_marked_pods_and_each_entry_has_its_own_mark() -> None:
    loop, binding = entries("shared.yaml")
    marks = [*loop["managedResources"], *binding["managedResources"]]
    assert [mark["name"] for mark in marks] == ["gang-extender.io/member", "gang-extender.io/member-bind"]
    assert all(mark["ignoredByScheduler"] for mark in marks)


def test_the_extender_does_not_look_for_the_marks_on_nodes() -> None:
    marks = [mark["name"] for entry in entries("shared.yaml") for mark in entry["managedResources"]]
    resources = {"requests": dict.fromkeys([*marks, "nvidia.com/gpu"], "1")}
    pod = convert(pod_json(spec={"containers": [{"name": "main", "resources": resources}]}), core_v1.Pod)
    assert effective_requests(pod) == (("nvidia.com/gpu", 1), ("pods", 1))


def test_a_shared_scheduler_leaves_other_pods_their_sample_of_nodes() -> None:
    config = scheduler_config("shared.yaml")
    (profile,) = (p for p in config["profiles"] if p["schedulerName"] == "default-scheduler")
    assert "percentageOfNodesToScore" not in {**config, **profile}


def test_the_two_schedulers_never_share_a_lease() -> None:
    assert scheduler_config("dedicated.yaml")["leaderElection"]["resourceName"] != "kube-scheduler"
    assert scheduler_config("shared.yaml")["leaderElection"] == {"leaderElect": True}

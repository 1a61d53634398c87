"""Is each way to wire kube-scheduler wrongly found, and nothing else beside it?"""

from typing import Any

import pytest

from extender.config import GangConfig
from extender.doctor.diagnosis import diagnose
from extender.doctor.entries import BEYOND_BINDING_S, Wiring, tls_agrees
from extender.doctor.managed import MARKS
from tests.doctor.installations import FILE, amiss, config, facts, scheduler, settings, wired
from tests.manifests.files import scheduler_config

Config = dict[str, Any]
LOOP, BIND, NAMES = 0, 1, 2


def change(entry: int, **fields: Any) -> Any:
    """Set these fields of an entry; None takes one away."""

    def apply(content: Config) -> None:
        for name, value in fields.items():
            content["extenders"][entry].pop(name, None)
            content["extenders"][entry] |= {} if value is None else {name: value}

    return apply


def both(**fields: Any) -> Any:
    """Set these fields of the two entries that are called."""

    def apply(content: Config) -> None:
        change(LOOP, **fields)(content)
        change(BIND, **fields)(content)

    return apply


def with_other(place: int, **fields: Any) -> Any:
    """Put another extender's entry at this place."""
    other = {"urlPrefix": "http://127.0.0.1:9999/other", "filterVerb": "filter", "nodeCacheCapable": True} | fields
    return lambda content: content["extenders"].insert(place, other)


def top(**fields: Any) -> Any:
    """Set these fields of the file."""
    return lambda content: content.update(fields)


def plugins(**sets: Any) -> Any:
    """Set these plugins of the one profile."""
    return lambda content: content["profiles"][0].update(plugins=sets)


def test_what_the_repository_installs_is_all_right() -> None:
    assert amiss(facts()) == []
    assert amiss(wired(lambda _: None, "shared.yaml")) == []
    assert len(diagnose(facts())) > 40


def test_the_rule_of_twenty_seconds_is_the_one_of_the_bind_verb() -> None:
    assert BEYOND_BINDING_S == 20


def test_the_marks_are_those_of_the_shared_configuration() -> None:
    entries = scheduler_config("shared.yaml")["extenders"][:2]
    assert tuple(entry["managedResources"][0]["name"] for entry in entries) == MARKS


WRONG = {
    # name: (what is changed, the check, level, what it says, the mend)
    "no entries": (top(extenders=[]), "extender entries", "error", "no entry calls the extender", "dedicated.yaml"),
    "filter verb missing": (
        change(LOOP, filterVerb=None),
        "verbs",
        "error",
        "filterVerb is missing",
        "filterVerb: filter",
    ),
    "prioritize verb missing": (
        change(LOOP, prioritizeVerb=None),
        "verbs",
        "warning",
        "prioritizeVerb is missing",
        "prioritizeVerb: prioritize",
    ),
    "preempt verb missing": (change(LOOP, preemptVerb=None), "verbs", "error", "evicts pods", "preemptVerb: preempt"),
    "bind verb missing": (
        lambda content: content["extenders"].pop(BIND),
        "verbs",
        "error",
        "binds the members one by one",
        "bindVerb: bind",
    ),
    "a verb misspelt": (change(LOOP, filterVerb="Filter"), "verbs", "error", "404", "filterVerb: filter"),
    "a verb twice": (
        change(BIND, filterVerb="filter", httpTimeout="90s"),
        "verbs",
        "warning",
        "in 2 entries",
        "one entry",
    ),
    "wrong path": (both(urlPrefix="http://127.0.0.1:8888"), "urlPrefix", "error", "path /,", ":8888/v1"),
    "wrong port": (both(urlPrefix="http://127.0.0.1:8889/v1"), "urlPrefix", "error", "port 8889", ":8888/v1"),
    "another host": (
        both(urlPrefix="http://gang-extender.gang-extender.svc:8888/v1"),
        "urlPrefix",
        "error",
        "listens on 127.0.0.1 alone",
        "http://127.0.0.1:8888/v1",
    ),
    "nodeCacheCapable false": (
        change(LOOP, nodeCacheCapable=False),
        "nodeCacheCapable",
        "error",
        "as if empty",
        "nodeCacheCapable: true",
    ),
    "nodeCacheCapable left out": (
        change(BIND, nodeCacheCapable=None),
        "nodeCacheCapable",
        "error",
        "is false",
        "nodeCacheCapable: true",
    ),
    "filter ignorable": (change(LOOP, ignorable=True), "ignorable", "error", "one by one", "ignorable: false"),
    "bind ignorable": (change(BIND, ignorable=True), "ignorable", "error", "one by one", "ignorable: false"),
    "bind time-out too short": (
        change(BIND, httpTimeout="30s"),
        "httpTimeout of bind",
        "error",
        "end after 30 s, and wait 80 s",
        "httpTimeout: 90s",
    ),
    "bind time-out left out": (
        change(BIND, httpTimeout=None),
        "httpTimeout of bind",
        "error",
        "5 s (the default: httpTimeout is not set)",
        "httpTimeout: 90s",
    ),
    "filter time-out too long": (
        change(LOOP, httpTimeout="1m30s"),
        "httpTimeout of filter, prioritize and preempt",
        "warning",
        "stops all scheduling for 90 s",
        "httpTimeout: 2s",
    ),
    "filter time-out too short": (
        change(LOOP, httpTimeout="50ms"),
        "httpTimeout of filter, prioritize and preempt",
        "warning",
        "pause of the machine",
        "httpTimeout: 2s",
    ),
    "weight 0": (change(LOOP, weight=0), "weight", "error", "refuses the file", "weight: 15"),
    "weight too small": (change(LOOP, weight=1), "weight", "warning", "outvote", "weight: 15"),
    "https without TLS on our side": (
        both(urlPrefix="https://127.0.0.1:8888/v1", tlsConfig={"caFile": "/ca.crt"}),
        "TLS of the entries",
        "error",
        "plain HTTP",
        "urlPrefix: http",
    ),
    "enableHTTPS with http": (
        change(LOOP, enableHTTPS=True, tlsConfig={"caFile": "/ca.crt"}),
        "TLS of the entries",
        "warning",
        "urlPrefix says http",
        "remove enableHTTPS",
    ),
    "enableHTTPS without a CA": (
        change(BIND, enableHTTPS=True, urlPrefix="https://127.0.0.1:8888/v1"),
        "TLS of the entries",
        "warning",
        "checks no certificate",
        "caFile",
    ),
    "another filter after ours": (
        with_other(1),
        "other extenders",
        "warning",
        "may refuse the one node",
        "before ours",
    ),
    "another ignorable filter before ours, which comes last all the same": (
        with_other(0, ignorable=True),
        "other extenders",
        "warning",
        "may refuse the one node",
        "not ignorable",
    ),
    "two that bind": (
        with_other(0, filterVerb="", bindVerb="bind"),
        "other extenders",
        "error",
        "refuses the file",
        "bindVerb",
    ),
    "managedResources on the filter entry of a kube-scheduler of our own": (
        change(LOOP, managedResources=[{"name": "nvidia.com/gpu"}]),
        "managedResources: every member comes",
        "error",
        "only for pods that ask for nvidia.com/gpu",
        "remove managedResources",
    ),
    "one managed resource in two entries": (
        change(NAMES, managedResources=scheduler_config("dedicated.yaml")["extenders"][2]["managedResources"] * 2),
        "managedResources: names",
        "error",
        "duplicate managed resource name",
        "shared.yaml",
    ),
    "no name of an extended resource": (
        change(
            NAMES,
            managedResources=[{"name": "gpu"}, *scheduler_config("dedicated.yaml")["extenders"][2]["managedResources"]],
        ),
        "managedResources: names",
        "error",
        "'gpu' is no name",
        "gang-extender.io/member",
    ),
    "the entry of names left out": (
        lambda content: content["extenders"].pop(NAMES),
        "managedResources: terms of GPU sharing",
        "warning",
        "nvidia.com/gpumem",
        "ignoredByScheduler: true",
    ),
    "ignoredResources of the user's": (
        lambda content: content["profiles"][0].update(
            pluginConfig=[{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}}]
        ),
        "ignoredResources of NodeResourcesFit",
        "warning",
        "replaces ignoredResources (example.com/x)",
        "name: example.com/x",
    ),
    "percentageOfNodesToScore left out": (
        lambda content: content.pop("percentageOfNodesToScore"),
        "percentageOfNodesToScore",
        "error",
        "is not set, the extender's setting says 1",
        "percentageOfNodesToScore: 1, here, or 0 in",
    ),
    "percentageOfNodesToScore of the profile": (
        lambda content: content["profiles"][0].update(percentageOfNodesToScore=50),
        "percentageOfNodesToScore",
        "error",
        "is 50",
        "percentageOfNodesToScore: 1, here, or 50 in",
    ),
    "preemption disabled": (
        plugins(postFilter={"disabled": [{"name": "DefaultPreemption"}]}),
        "plugins",
        "warning",
        "no gang ever preempts",
        "DefaultPreemption",
    ),
    "scheduling gates disabled": (
        plugins(multiPoint={"disabled": [{"name": "SchedulingGates"}]}),
        "plugins",
        "error",
        "hold mode",
        "SchedulingGates",
    ),
    "a filter plugin disabled": (
        plugins(filter={"disabled": [{"name": "TaintToleration"}]}),
        "plugins",
        "warning",
        "TaintToleration is disabled",
        "enable TaintToleration",
    ),
    "another gang plugin": (
        plugins(permit={"enabled": [{"name": "Coscheduling"}]}),
        "plugins",
        "error",
        "Coscheduling holds gangs",
        "disable Coscheduling",
    ),
    "back-off too long": (
        top(podMaxBackoffSeconds=60),
        "back-off",
        "warning",
        "comes after 60 s",
        "podMaxBackoffSeconds: 12",
    ),
    "kube-scheduler's own client limits": (
        top(clientConnection={}),
        "clientConnection",
        "warning",
        "stops all scheduling for 18 s",
        "burst: 1000",
    ),
    "the lease of the cluster's own kube-scheduler": (
        top(leaderElection={"leaderElect": True}),
        "leases",
        "error",
        "only one of the two works",
        "resourceName: gang-scheduler",
    ),
}


@pytest.mark.parametrize(("apply", "check", "level", "what", "mend"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_in_a_kube_scheduler_of_our_own(apply: Any, check: str, level: str, what: str, mend: str) -> None:
    found = [finding for finding in amiss(wired(apply)) if finding.check == check]
    assert [each for each in found if each.level == level and what in each.what and mend in each.mend], found
    assert all(finding.where.startswith(FILE) for finding in found)


def test_one_mistake_is_one_finding() -> None:
    """But for filter in the entry that may take as long as bind: that is two."""
    more = {name: [each.check for each in amiss(wired(wrong[0]))] for name, wrong in WRONG.items()}
    assert {name: checks for name, checks in more.items() if len(set(checks)) > 1} == {
        "a verb twice": ["verbs", "httpTimeout of filter, prioritize and preempt"],
    }


SHARED_WRONG = {
    "no managedResources on the filter entry": (
        change(LOOP, managedResources=None),
        "managedResources: nobody else comes",
        "every pod of default-scheduler comes",
        "name: gang-extender.io/member,",
    ),
    "no managedResources on the bind entry": (
        change(BIND, managedResources=None),
        "managedResources: nobody else comes",
        "every pod of default-scheduler comes",
        "name: gang-extender.io/member-bind,",
    ),
    "GPUs for a mark": (
        change(LOOP, managedResources=[{"name": "nvidia.com/gpu"}]),
        "managedResources: every member comes",
        "parameter servers",
        "gang-extender.io/member",
    ),
    "a mark that nodes must offer": (
        change(LOOP, managedResources=[{"name": "gang-extender.io/member"}]),
        "managedResources: marks are ignored by kube-scheduler",
        "no member ever fits",
        "ignoredByScheduler: true",
    ),
    "one mark for both": (
        change(BIND, managedResources=[{"name": "gang-extender.io/member", "ignoredByScheduler": True}]),
        "managedResources: names",
        "refuses the file",
        "two marks",
    ),
    "a sample of nodes": (
        lambda content: content["profiles"][1].pop("percentageOfNodesToScore"),
        "percentageOfNodesToScore",
        "it must be 100",
        "percentageOfNodesToScore: 100",
    ),
}


@pytest.mark.parametrize(("apply", "check", "what", "mend"), SHARED_WRONG.values(), ids=SHARED_WRONG.keys())
def test_a_mistake_in_a_shared_kube_scheduler(apply: Any, check: str, what: str, mend: str) -> None:
    (found,) = amiss(wired(apply, "shared.yaml"))
    assert (found.check, found.level) == (check, "error")
    assert what in found.what
    assert mend in found.mend


def test_a_longer_wait_for_the_gang_asks_for_a_longer_bind_call() -> None:
    (found,) = amiss(facts(settings=settings(gangs={"bindingSeconds": 120.0})))
    assert found.check == "httpTimeout of bind"
    assert found.mend == "httpTimeout: 140s"
    assert GangConfig().binding_seconds + BEYOND_BINDING_S < 90


def test_a_scheduler_name_that_no_profile_has() -> None:
    (found,) = amiss(facts(settings=settings(schedulerNames=["gang-scheduler", "other"]), policies={}))[:1]
    assert (found.check, found.level) == ("profiles", "warning")
    assert "other" in found.what


def test_a_cluster_in_which_no_kube_scheduler_is_for_us() -> None:
    plain = scheduler(
        lambda content: (content["profiles"][0].update(schedulerName="mine"), content["extenders"].clear())
    )
    (found,) = amiss(facts(schedulers=(plain,)))
    assert (found.check, found.level) == ("a kube-scheduler for us", "error")
    assert "mine" in found.what


def test_two_kube_schedulers_with_one_lease() -> None:
    """Both are seen to run, so that one of them does not work."""
    mine = scheduler(lambda content: content["profiles"][0].update(schedulerName="mine"), source="ConfigMap b, key c")
    (found,) = amiss(facts(schedulers=(scheduler(), mine)))[-1:]
    assert (found.check, found.level) == ("leases", "error")
    assert "gang-extender/gang-scheduler is also that of" in found.what


def test_plugins_that_are_disabled_all_and_listed_again_are_there() -> None:
    again = ["SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder"]
    listed = plugins(multiPoint={"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in again]})
    found = amiss(wired(listed))
    assert {finding.check for finding in found} == {"plugins"}
    assert not any(name in finding.what for finding in found for name in again)


def test_what_kube_scheduler_tells_of_itself_is_read_as_its_file_is() -> None:
    assert config().names == ("gang-scheduler",)


TLS = {"caFile": "/ca.crt", "certFile": "/tls.crt", "keyFile": "/tls.key"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"urlPrefix": "https://127.0.0.1:8888/v1", "enableHTTPS": True, "tlsConfig": TLS}, []),
        ({}, ["it calls plain HTTP, the extender takes TLS alone"] * 2),
        (
            {"urlPrefix": "https://127.0.0.1:8888/v1", "tlsConfig": {"caFile": "/ca.crt"}},
            ["it shows no client certificate, and the extender answers nobody without one"] * 2,
        ),
        (
            {"urlPrefix": "https://127.0.0.1:8888/v1", "tlsConfig": TLS | {"insecure": True}},
            ["tlsConfig.insecure checks no certificate"] * 2,
        ),
    ],
    ids=["right", "plain", "no certificate", "insecure"],
)
def test_entries_for_an_extender_that_serves_tls_alone(fields: dict[str, Any], said: list[str]) -> None:
    tls = {"certFile": "/tls.crt", "keyFile": "/tls.key", "clientCaFile": "/ca.crt"}
    wiring = Wiring(config(both(**fields)), settings(server={"tls": tls}))
    assert [problem.what for problem in tls_agrees(wiring)] == said

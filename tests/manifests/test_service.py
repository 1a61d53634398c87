"""Service mode: do the extenders, their lease, their Service and the kube-scheduler that calls them fit together?"""

from typing import Any
from urllib.parse import urlsplit

import yaml

from extender.app import DRAIN_S
from extender.config import load_config
from tests.manifests.files import SERVICE, Object, manifest, pod_spec, scheduler_config
from tests.manifests.test_rbac import rights

CONFIG: Object = yaml.safe_load((SERVICE / "config.yaml").read_text())
DEDICATED: Object = yaml.safe_load((SERVICE / "dedicated.yaml").read_text())
NAMES = {"server", "urlPrefix", "enableHTTPS", "tlsConfig"}


def spec() -> Object:
    extender: Object = manifest("Deployment", "gang-extender", SERVICE)["spec"]["template"]["spec"]
    return extender


def test_the_extender_accepts_the_configuration_that_it_is_given() -> None:
    config = load_config(SERVICE / "config.yaml")
    assert (config.server.address, config.leader_election.resource_namespace) == ("0.0.0.0", "gang-extender")  # noqa: S104


def test_the_extenders_may_hold_the_lease_of_their_election_which_is_not_the_schedulers() -> None:
    election = CONFIG["leaderElection"]
    assert election["mode"] == "service"
    assert election["resourceName"] != DEDICATED["leaderElection"]["resourceName"]
    role = manifest("Role", "gang-extender-election", SERVICE)
    assert role["metadata"]["namespace"] == "gang-extender", "which is where the lease is by default"
    lease = ("coordination.k8s.io", "leases", election["resourceName"])
    assert rights(role) == {
        ("coordination.k8s.io", "leases", "", "create"),
        *((*lease, verb) for verb in ("get", "list", "watch", "update")),
    }
    assert (
        spec()["serviceAccountName"]
        == manifest("RoleBinding", "gang-extender-election", SERVICE)["subjects"][0]["name"]
    )


def test_the_scheduler_differs_from_that_of_the_base_by_the_address_of_the_extender_alone() -> None:
    def without_address(config: Object) -> Object:
        entries = [{k: v for k, v in each.items() if k not in NAMES} for each in config["extenders"]]
        return {**config, "extenders": entries}

    assert without_address(DEDICATED) == without_address(scheduler_config("dedicated.yaml"))


def test_the_scheduler_calls_the_service_with_a_certificate() -> None:
    service = manifest("Service", "gang-extender", SERVICE)
    where = (
        f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc:{service['spec']['ports'][0]['port']}"
    )
    for entry in DEDICATED["extenders"]:
        assert urlsplit(entry["urlPrefix"]).netloc == where
        assert entry["urlPrefix"].startswith("https://")
        assert {"caFile", "certFile", "keyFile"} <= entry["tlsConfig"].keys()
    assert CONFIG["server"]["tls"].keys() == {"certFile", "keyFile", "clientCaFile"}


def test_the_service_finds_the_extender_that_is_ready_and_no_scheduler() -> None:
    labels = manifest("Deployment", "gang-extender", SERVICE)["spec"]["template"]["metadata"]["labels"]
    selector = manifest("Service", "gang-extender", SERVICE)["spec"]["selector"]
    assert selector.items() <= labels.items()
    (extender,) = spec()["containers"]
    assert extender["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert "startupProbe" not in extender, "who stands by is never ready"


def test_the_extenders_keep_away_from_the_gpus_as_those_of_the_base_do() -> None:
    assert spec()["affinity"] == pod_spec()["affinity"]
    assert spec()["tolerations"] == pod_spec()["tolerations"]


def test_an_update_does_not_wait_for_pods_that_cannot_become_ready_before_it() -> None:
    update: dict[str, Any] = manifest("Deployment", "gang-extender", SERVICE)["spec"]["strategy"]["rollingUpdate"]
    assert update == {"maxSurge": "100%", "maxUnavailable": "100%"}
    (extender,) = spec()["containers"]
    waits_s = extender["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec()["terminationGracePeriodSeconds"] > waits_s + DRAIN_S

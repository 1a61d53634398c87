"""What do the network policies let in and out? Asserted whole, so that a port more is as much a failure as one less."""

from extender.config import ServerConfig
from tests.manifests.files import Object, container, manifest


def ports(rules: list[Object]) -> set[tuple[str, int]]:
    return {(port["protocol"], port["port"]) for rule in rules for port in rule["ports"]}


def policy() -> Object:
    spec: Object = manifest("NetworkPolicy", "gang-scheduler")["spec"]
    return spec


def test_what_no_rule_allows_is_denied_to_every_pod_of_the_namespace() -> None:
    assert manifest("NetworkPolicy", "default-deny")["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }


def test_the_rules_are_for_our_pods() -> None:
    deployment = manifest("Deployment", "gang-scheduler")["spec"]
    assert policy()["podSelector"] == deployment["selector"]
    assert policy()["policyTypes"] == ["Ingress", "Egress"]


def test_probes_and_metrics_are_let_in_and_the_verbs_are_not() -> None:
    served = {port["containerPort"] for name in ("extender", "kube-scheduler") for port in container(name)["ports"]}
    assert ports(policy()["ingress"]) == {("TCP", port) for port in served}
    assert ServerConfig().port not in served


def test_the_api_server_and_dns_are_let_out() -> None:
    assert ports(policy()["egress"]) == {("TCP", 443), ("TCP", 6443), ("UDP", 53), ("TCP", 53)}

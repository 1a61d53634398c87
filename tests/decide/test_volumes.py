"""Which nodes reach a pod's volumes, judged as kube-scheduler judges them."""

import pytest

from extender.decide.volumes import reach_volumes, volume_terms
from extender.model.pod import ClaimUse, NodeSelectorTerm, Pod, Requirement, VolumeTerms
from extender.model.verdict import NoVolumeZone, Reason, VolumeElsewhere
from extender.model.volume import PersistentVolume, VolumeClaim
from tests.builders import a_node, a_pod

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
FAST = (NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),)),)
LARGE = (NodeSelectorTerm((Requirement("size", "Exists"),)), NodeSelectorTerm((Requirement("huge", "Exists"),)))


def reasons(volumes: VolumeTerms | None, **labels: str) -> tuple[Reason, ...]:
    return reach_volumes(volumes, a_node("n1", labels={key.replace("__", "/"): value for key, value in labels.items()}))


def zones(*pairs: tuple[str, str]) -> VolumeTerms:
    return VolumeTerms(zones=tuple((key, frozenset(values.split())) for key, values in pairs))


def test_every_volume_must_match_by_one_of_its_terms() -> None:
    volumes = VolumeTerms((FAST, LARGE))
    assert reasons(volumes, disk="ssd", huge="") == ()
    assert reasons(volumes, disk="ssd") == (VolumeElsewhere(),)
    assert reasons(volumes, size="1") == (VolumeElsewhere(),)
    assert reasons(None) == ()


@pytest.mark.parametrize(
    ("volumes", "labels", "fits"),
    [
        (zones((ZONE, "a b")), {ZONE: "b"}, True),
        (zones((ZONE, "a b")), {ZONE: "c"}, False),
        (zones((ZONE, "a"), (REGION, "r")), {ZONE: "a", REGION: "s"}, False),
        (zones((ZONE, "a"), (REGION, "r")), {ZONE: "a"}, False),
        (zones((ZONE, "a")), {}, True),
        (zones((ZONE, "a")), {"disk": "ssd"}, True),
        (zones((BETA_ZONE, "a")), {ZONE: "a"}, True),
        (zones((BETA_ZONE, "a")), {ZONE: "a", BETA_ZONE: "b"}, False),
        (zones((ZONE, "a")), {BETA_ZONE: "a"}, False),
    ],
)
def test_a_node_with_zone_labels_must_be_where_every_label_of_the_volumes_says(
    volumes: VolumeTerms, labels: dict[str, str], *, fits: bool
) -> None:
    assert reach_volumes(volumes, a_node("n1", labels=labels)) == (() if fits else (NoVolumeZone(),))


def terms_of(pod: Pod, claim: VolumeClaim | None, volume: PersistentVolume | None) -> VolumeTerms | None:
    return volume_terms(pod, {claim.key: claim} if claim else {}, {volume.name: volume} if volume else {})


def test_a_bound_claim_asks_what_its_volume_asks() -> None:
    pod = a_pod("p", claims=(ClaimUse("data"),))
    local = PersistentVolume("pv", FAST, ((ZONE, frozenset("a")),))
    assert terms_of(pod, VolumeClaim("default", "data", "pv"), local) == VolumeTerms((FAST,), local.zones)
    assert terms_of(pod, VolumeClaim("default", "data", "pv"), PersistentVolume("pv")) is None


def test_the_zone_of_an_ephemeral_volume_is_not_looked_at() -> None:
    pod = a_pod("p", claims=(ClaimUse("p-tmp", ephemeral=True),))
    claim = VolumeClaim("default", "p-tmp", "pv", made_for=pod.uid)
    assert terms_of(pod, claim, PersistentVolume("pv", FAST, ((ZONE, frozenset("a")),))) == VolumeTerms((FAST,))


@pytest.mark.parametrize(
    ("claim", "volume", "unmodelled"),
    [
        (None, None, "unbound volumes"),
        (VolumeClaim("default", "data"), None, "unbound volumes"),
        (VolumeClaim("default", "data", "pv"), None, "unbound volumes"),
        (VolumeClaim("default", "data", "pv", failing=True), PersistentVolume("pv"), "unbound volumes"),
        (VolumeClaim("elsewhere", "data", "pv"), PersistentVolume("pv"), "unbound volumes"),
        (VolumeClaim("default", "data", "pv", single_pod=True), PersistentVolume("pv"), "volumes of one pod"),
        (VolumeClaim("default", "data", "pv"), PersistentVolume("pv", counted=True), "volume limits"),
        (VolumeClaim("default", "data", "pv"), PersistentVolume("pv", migratable=True), "in-tree volumes"),
    ],
)
def test_what_only_kube_scheduler_can_judge_is_named(
    claim: VolumeClaim | None, volume: PersistentVolume | None, unmodelled: str
) -> None:
    pod = a_pod("p", claims=(ClaimUse("data"),))
    assert terms_of(pod, claim, volume) == VolumeTerms(unmodelled=(unmodelled,))


def test_an_ephemeral_volume_of_another_pod_is_no_volume_of_this_one() -> None:
    pod = a_pod("p", claims=(ClaimUse("p-tmp", ephemeral=True),))
    claim = VolumeClaim("default", "p-tmp", "pv", made_for="somebody")
    assert terms_of(pod, claim, PersistentVolume("pv")) == VolumeTerms(unmodelled=("unbound volumes",))

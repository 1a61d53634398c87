"""Volumes of gangs: what is bound decides where members go, and what becomes bound is planned for at once."""

from msgspec import structs

from extender.model.pod import ClaimUse, NodeSelectorTerm, Pod, Requirement
from extender.model.volume import PersistentVolume, VolumeClaim
from extender.state.reservations import Stage
from tests.builders import a_node, a_pod
from tests.rig import Rig


def local_to(node: str, name: str = "pv") -> PersistentVolume:
    return PersistentVolume(name, (NodeSelectorTerm((Requirement("host", "In", (node,)),)),))


def rig_of(*nodes: str) -> Rig:
    return Rig(*[a_node(name, labels={"host": name}) for name in nodes])


def member(name: str, claim: str, *, min_available: int) -> Pod:
    return a_pod(name, gang="g", claims=(ClaimUse(claim),), min_available=min_available)


CLAIM = VolumeClaim("default", "data", "pv")


def test_members_go_where_their_volumes_are_whatever_is_seen_first() -> None:
    rig = rig_of("n1", "n2", "n3")
    pods = [member(f"w{i}", f"data-{i}", min_available=2) for i in range(2)]
    rig.cluster.replace_volumes([local_to("n3", "pv-0")])
    rig.cluster.replace_claims([VolumeClaim("default", f"data-{i}", f"pv-{i}") for i in range(2)])
    rig.create(*pods)
    rig.cluster.upsert_volume(local_to("n2", "pv-1"))
    assert [rig.node_for(pod) for pod in pods] == ["n3", "n2"]


def test_a_gang_whose_volume_no_node_with_room_reaches_waits_and_is_told_in_kube_schedulers_words() -> None:
    rig = rig_of("n1", "n2")
    rig.cluster.upsert_volume(local_to("gone"))
    rig.cluster.upsert_claim(CLAIM)
    pod = member("w0", "data", min_available=1)
    rig.create(pod)
    assert "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity." in rig.text_for(pod)

    rig.cluster.upsert_volume(local_to("n2"))
    rig.later()
    assert rig.reserved() == 1
    assert rig.node_for(pod) == "n2"


def test_a_claim_that_is_not_bound_makes_a_plan_to_be_tried_and_one_that_is_makes_it_known() -> None:
    rig = rig_of("n1", "n2")
    pod = member("w0", "data", min_available=1)
    rig.create(pod)
    assert rig.cluster.pods[pod.uid].shape.is_provisional
    rig.cluster.upsert_claim(CLAIM)
    rig.cluster.upsert_volume(local_to("n2"))
    assert not rig.cluster.pods[pod.uid].shape.is_provisional
    rig.cluster.remove_volume("pv")
    assert rig.cluster.pods[pod.uid].shape.is_provisional
    rig.cluster.upsert_volume(local_to("n2"))
    rig.cluster.remove_claim(CLAIM.key)
    assert rig.cluster.pods[pod.uid].shape.is_provisional


def test_room_that_is_planned_where_the_volume_turns_out_not_to_be_is_planned_anew() -> None:
    rig = rig_of("n1", "n2")
    pod = member("w0", "data", min_available=1)
    rig.create(pod)
    rig.later()
    there = rig.slot(pod).node
    elsewhere = "n2" if there == "n1" else "n1"
    rig.cluster.upsert_claim(CLAIM)
    rig.cluster.upsert_volume(local_to(elsewhere))
    rig.later()
    assert [slot.node for held in rig.cluster.reservations for slot in held.slots] == [elsewhere]


def test_a_member_that_was_let_through_keeps_its_room_while_its_volume_is_made_there() -> None:
    rig = rig_of("n1", "n2")
    pods = [member("w0", "data", min_available=2), member("w1", "other", min_available=2)]
    rig.create(*pods)
    node = rig.node_for(pods[0])
    assert node is not None
    rig.cluster.upsert_claim(CLAIM)
    rig.cluster.upsert_volume(local_to(node))
    rig.later()
    assert (rig.slot(pods[0]).node, rig.slot(pods[0]).stage) == (node, Stage.ACCEPTED)


def test_a_bound_pod_stays_what_it_was_when_it_was_placed_and_leaves_nothing() -> None:
    rig = rig_of("n1")
    rig.cluster.upsert_claim(CLAIM)
    rig.cluster.upsert_volume(local_to("n1"))
    pod = member("w0", "data", min_available=1)
    rig.create(pod)
    bound = rig.bind(pod, rig.node_for(pod))
    rig.cluster.upsert_volume(local_to("n2"))
    assert rig.cluster.pods[pod.uid].shape.volumes is not None
    rig.create(structs.replace(bound, running=True))
    rig.delete(bound)
    assert rig.cluster.snapshot().rooms["n1"].pods == ()
    assert not rig.cluster._volumes._users


def test_a_new_list_of_claims_and_volumes_forgets_what_it_does_not_name() -> None:
    rig = rig_of("n1")
    rig.cluster.upsert_claim(CLAIM)
    rig.cluster.upsert_volume(local_to("n1"))
    pod = member("w0", "data", min_available=1)
    rig.create(pod)
    rig.cluster.replace_volumes([])
    assert rig.cluster.pods[pod.uid].shape.is_provisional
    rig.cluster.replace_volumes([local_to("n1")])
    assert not rig.cluster.pods[pod.uid].shape.is_provisional
    rig.cluster.replace_claims([])
    assert rig.cluster.pods[pod.uid].shape.is_provisional

"""kube-scheduler's questions, and answers that it understands.

The bodies in golden/ are what k8s.io/kube-scheduler v0.36.3 encodes.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from extender.model.claim import GangClaim
from extender.wire.extender_v1 import (
    BindingArgs,
    ExtenderArgs,
    Victims,
    decode_args,
    decode_binding_args,
    decode_preemption_args,
    encode_binding,
    encode_filter,
    encode_filter_error,
    encode_preemption,
    encode_priorities,
)
from extender.wire.malformed import MalformedBody
from tests.builders import a_pod, node_json, pod_json

UID = "0f9d6c1e-8a55-4c0e-9f0e-2d6f6f0c1a11"


def golden(name: str) -> bytes:
    return (Path(__file__).parent / "golden" / f"{name}.json").read_bytes()


def test_filter_with_names_only() -> None:
    args = decode_args(golden("filter_node_names"))

    assert (list(args.node_names), args.raw_nodes) == (["n1", "n2"], None)
    assert (args.pod.uid, args.pod.name, args.pod.role) == (UID, "torch-mnist-edljob-worker-0", "worker")
    assert isinstance(args.pod.gang, GangClaim)
    assert (args.pod.gang.key, args.pod.gang.min_available) == ("dlrover/torch-mnist-gang", 4)
    assert args.pod.turned_away
    assert dict(args.pod.shape.requests) == {"cpu": 4000, "memory": 8 * 2**30, "nvidia.com/gpu": 1, "pods": 1}


def test_filter_with_whole_nodes_gives_them_back_as_they_came() -> None:
    body = golden("filter_nodes")
    args = decode_args(body)

    answer = json.loads(encode_filter(args, ["n2"], unresolvable={"n1": "no"}))

    assert list(args.node_names) == ["n1", "n2"]
    assert answer["NodeNames"] is None
    assert answer["Nodes"]["items"] == [json.loads(body)["Nodes"]["items"][1]]
    assert answer["FailedAndUnresolvableNodes"] == {"n1": "no"}


def test_a_request_without_nodes_offers_none() -> None:
    body = json.dumps({"Pod": pod_json(), "Nodes": {"metadata": {}, "items": None}, "NodeNames": None})
    args = decode_args(body.encode())
    assert list(args.node_names) == []
    assert json.loads(encode_filter(args, []))["Nodes"] == {"metadata": {}, "items": []}


def by_name(*names: str) -> ExtenderArgs:
    return ExtenderArgs(a_pod("w0"), names)


def test_a_rejection_names_no_node_and_says_why() -> None:
    answer = encode_filter(by_name("n1"), [], {"n1": 'gang "a"'})
    assert answer == (
        b'{"Nodes":null,"NodeNames":[],"FailedNodes":{},"FailedAndUnresolvableNodes":{"n1":"gang \\"a\\""},"Error":""}'
    )


def test_an_acceptance_names_the_nodes() -> None:
    answer = encode_filter(by_name("n1", "n2"), (name for name in ("n2",)))
    assert json.loads(answer) == {
        "Nodes": None,
        "NodeNames": ["n2"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_an_error_is_neither_acceptance_nor_rejection() -> None:
    answer = json.loads(encode_filter_error("cache not synced"))
    assert (answer["Error"], answer["NodeNames"], answer["Nodes"]) == ("cache not synced", None, None)


def test_priorities_are_a_bare_list_of_whole_numbers() -> None:
    assert encode_priorities({"n1": 10, "n2": 0}) == b'[{"Host":"n1","Score":10},{"Host":"n2","Score":0}]'
    assert encode_priorities({}) == b"[]"


@pytest.mark.parametrize(
    ("body", "victims"),
    [
        ("preempt_meta_victims", {"n1": Victims(("uid-victim",), 1), "n2": Victims(())}),
        ("preempt_victims", {"n1": Victims(("uid-victim",), 1)}),
    ],
)
def test_preempt_names_the_victims_in_either_form(body: str, victims: dict[str, Victims]) -> None:
    args = decode_preemption_args(golden(body))
    assert (args.pod.uid, args.victims) == (UID, victims)


def test_preempt_answers_with_the_victims_or_a_veto() -> None:
    asked = json.loads(golden("preempt_meta_victims"))["NodeNameToMetaVictims"]
    answer = encode_preemption(decode_preemption_args(golden("preempt_meta_victims")).victims)
    assert json.loads(answer) == {"NodeNameToMetaVictims": asked}
    assert encode_preemption({}) == b'{"NodeNameToMetaVictims":{}}'


def test_bind() -> None:
    args = decode_binding_args(golden("bind"))
    assert args == BindingArgs("dlrover", "torch-mnist-edljob-worker-0", UID, "n1")
    assert encode_binding() == b'{"Error":""}'
    assert encode_binding("no") == b'{"Error":"no"}'


BAD_POD = pod_json(spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "truncated"),
        (b"null", "got `null`"),
        (b"[1]", "got `array`"),
        (b"\xff\xfe", "malformed"),
        (b'{"x":' + b'{"a":' * 100_000, "recursion depth"),
        (b'{"Pod":{"metadata":{"name":"\xff","uid":"u"},"spec":{}},"NodeNames":[]}', "utf-8"),
        ({"Pod": None, "NodeNames": []}, "Pod"),
        ({"NodeNames": []}, "`Pod`"),
        ({"pod": pod_json(), "nodenames": []}, "`Pod`"),
        ({"Pod": pod_json(), "NodeNames": None, "Nodes": None}, "neither NodeNames nor Nodes"),
        ({"Pod": pod_json(), "NodeNames": [1]}, r"NodeNames\[0\]"),
        ({"Pod": pod_json(), "Nodes": {"items": [{"spec": {}}]}}, "metadata"),
        ({"Pod": pod_json(metadata={"uid": None}), "NodeNames": []}, "uid"),
        ({"Pod": BAD_POD, "NodeNames": []}, "'lots' is no quantity"),
    ],
)
def test_a_malformed_question_is_refused_with_a_sentence(body: bytes | dict[str, Any], told: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(MalformedBody, match=told) as refusal:
        decode_args(content)
    assert str(refusal.value).startswith("This is no ")
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("absent", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_a_binding_must_say_which_pod_and_which_node(absent: str) -> None:
    body = json.loads(golden("bind"))
    for value in ("", None):
        with pytest.raises(MalformedBody, match=absent):
            decode_binding_args(json.dumps(body | {absent: value}).encode())
    del body[absent]
    with pytest.raises(MalformedBody, match=absent):
        decode_binding_args(json.dumps(body).encode())


def test_a_preemption_without_a_pod_is_malformed() -> None:
    with pytest.raises(MalformedBody, match="ExtenderPreemptionArgs"):
        decode_preemption_args(b'{"NodeNameToMetaVictims":{}}')


def test_text_of_any_kind_survives() -> None:
    name = "n\u00f6de-\u4e16\U0001f600\n"
    args = decode_args(json.dumps({"Pod": pod_json(), "Nodes": {"items": [node_json(name)]}}).encode())
    assert json.loads(encode_filter(args, [name]))["Nodes"]["items"] == [node_json(name)]


def test_of_a_pod_that_is_known_only_its_nomination_is_read() -> None:
    known = a_pod("w0")
    asked = pod_json("w0", metadata={"uid": known.uid}, status={"nominatedNodeName": "n1"})
    args = decode_args(json.dumps({"Pod": asked, "NodeNames": ["n1"]}).encode(), {known.uid: known}.get)
    assert args.pod == structs.replace(known, nominated_node="n1")
    del asked["status"]
    args = decode_args(json.dumps({"Pod": asked, "NodeNames": ["n1"]}).encode(), {known.uid: known}.get)
    assert args.pod is known


def test_a_node_that_was_not_offered_is_answered_as_an_object() -> None:
    args = decode_args(json.dumps({"Pod": pod_json(), "NodeNames": ["n1", "n2"]}).encode())
    answer = json.loads(encode_filter(args, ["n9"]))
    assert (answer["NodeNames"], answer["Nodes"]["items"]) == (None, [{"metadata": {"name": "n9"}}])
    assert json.loads(encode_filter(args, ["n2"]))["NodeNames"] == ["n2"]

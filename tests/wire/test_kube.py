"""Pages of a list and lines of a watch; a bad object never costs the others."""

import json
import re
from typing import Any

import pytest

from extender.wire.kube import (
    NODES,
    PODS,
    Bookmark,
    Changed,
    Deleted,
    ObjectId,
    Unreadable,
    WatchError,
    decode_event,
    open_page,
    read_page,
)
from extender.wire.malformed import MalformedBody
from tests.builders import node_json, pod_json, uid_of


def page(*items: object, **metadata: str) -> bytes:
    return json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


def event(kind: str, content: object) -> bytes:
    return json.dumps({"type": kind, "object": content}).encode()


def test_a_page_has_its_objects_and_where_to_go_on() -> None:
    opened = open_page(PODS, page(pod_json("w0"), pod_json("w1"), resourceVersion="40", **{"continue": "token"}))
    read = read_page(PODS, opened)

    assert [(seen.id, seen.resource_version, seen.object.name) for seen in read.objects] == [
        (ObjectId(uid_of("w0"), "default", "w0"), "7", "w0"),
        (ObjectId(uid_of("w1"), "default", "w1"), "7", "w1"),
    ]
    assert (opened.resource_version, opened.continue_token, read.problems) == ("40", "token", ())


def test_the_last_page_has_no_token_and_may_be_empty() -> None:
    opened = open_page(NODES, b'{"metadata":{"resourceVersion":"3"},"items":null}')
    assert (opened.items, opened.resource_version, opened.continue_token) == ((), "3", "")


def test_nodes_are_read_by_the_same_means() -> None:
    read = read_page(NODES, open_page(NODES, page(node_json("n1"), resourceVersion="3")))
    assert [seen.object.name for seen in read.objects] == ["n1"]


BAD_QUANTITY = pod_json("bad", spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]})
BAD_TYPE = pod_json("bad", spec={"containers": "none"})


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (BAD_QUANTITY, "Pod default/bad: 'lots' is no quantity"),
        (BAD_TYPE, r"Pod default/bad: Expected `array \| null`, got `str` - at `\$.spec.containers`"),
        ({"spec": {}}, "Pod without readable metadata: .*metadata"),
        ("text", "Pod without readable metadata: Expected `object`, got `str`"),
    ],
)
def test_a_bad_object_is_skipped_and_told_of(bad: object, told: str) -> None:
    read = read_page(PODS, open_page(PODS, page(pod_json("w0"), bad, pod_json("w1"))))

    assert [seen.object.name for seen in read.objects] == ["w0", "w1"]
    (problem,) = read.problems
    assert re.match(told, problem)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"metadata":{}', b'{"kind":"Status","metadata":{}}', b'{"items":[]}', b"[" * 99_999],
)
def test_what_is_no_list_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody, match="no list of Pod objects"):
        open_page(PODS, body)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_a_changed_object(kind: str) -> None:
    read = decode_event(PODS, event(kind, pod_json("w0")))

    assert isinstance(read, Changed)
    assert (read.seen.id.uid, read.seen.resource_version, read.seen.object.name) == (uid_of("w0"), "7", "w0")


@pytest.mark.parametrize("content", [pod_json("w0"), BAD_QUANTITY, BAD_TYPE])
def test_a_deleted_object_is_known_by_its_metadata_alone(content: dict[str, Any]) -> None:
    name = content["metadata"]["name"]
    assert decode_event(PODS, event("DELETED", content)) == Deleted(ObjectId(uid_of(name), "default", name), "7")


def test_an_unreadable_object_leaves_its_version_to_go_on_from() -> None:
    read = decode_event(PODS, event("MODIFIED", BAD_QUANTITY))

    assert isinstance(read, Unreadable)
    assert read.resource_version == "7"
    assert read.problem.startswith("Pod default/bad: 'lots'")


@pytest.mark.parametrize(
    ("annotations", "ends"), [({}, False), ({"annotations": {"k8s.io/initial-events-end": "true"}}, True)]
)
def test_a_bookmark(annotations: dict[str, Any], *, ends: bool) -> None:
    metadata = {"resourceVersion": "12746", "creationTimestamp": None, **annotations}
    content = {"kind": "Pod", "metadata": metadata, "spec": {"containers": None}, "status": {}}
    assert decode_event(PODS, event("BOOKMARK", content)) == Bookmark("12746", ends)


def test_an_expired_watch() -> None:
    status = {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}
    assert decode_event(PODS, event("ERROR", status)) == WatchError(410, "Expired", "too old", 0)


def test_a_throttled_watch_says_how_long_to_wait() -> None:
    status = {"reason": "TooManyRequests", "code": 429, "message": "slow", "details": {"retryAfterSeconds": 3}}
    assert decode_event(PODS, event("ERROR", status)) == WatchError(429, "TooManyRequests", "slow", 3)


@pytest.mark.parametrize(
    "line",
    [b"", b'{"type":"ADDED","obj', b'{"type":"ADDED"}', event("NEWS", {}), event("DELETED", {}), event("BOOKMARK", {})],
)
def test_what_is_no_event_is_malformed(line: bytes) -> None:
    with pytest.raises(MalformedBody, match="Pod"):
        decode_event(PODS, line)

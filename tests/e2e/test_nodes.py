"""What does a file of nodes get that cannot be used?"""

from pathlib import Path

import pytest

from e2e.nodes import NodeFileError, completed, is_usable, make_node, read_nodes

GOOD = "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 1, memory: 1Gi, pods: 10}}}"


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(NodeFileError) as error:
        read_nodes(path)
    return [line.removeprefix(f"{path}: ") for line in str(error.value).splitlines()]


def test_a_good_file_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(f"---\n{GOOD}\n---\n{GOOD.replace('name: a', 'name: b')}\n---\n")
    assert [node["metadata"]["name"] for node in read_nodes(path)] == ["a", "b"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NodeFileError, match=r"nodes.yaml: cannot be read: No such file"):
        read_nodes(tmp_path / "nodes.yaml")


def test_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    assert problems(tmp_path, "a: [")[0].startswith("not YAML: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no Node: write at least one, each after a line `---`"),
        ("7", "document 1: must be an object with `apiVersion: v1` and `kind: Node`"),
        (GOOD.replace("Node", "Pod"), "document 1: must be an object with `apiVersion: v1` and `kind: Node`"),
        (GOOD.replace("name: a", "name: 7"), "document 1: metadata.name must be the node's name"),
        (GOOD.replace("{name: a}", "[]"), "document 1: metadata.name must be the node's name"),
        (f"{GOOD}\n---\n{GOOD}", "document 2: metadata.name: 'a' is the name of an earlier node as well"),
        (GOOD.replace("cpu: 1,", ""), "document 1 (a): status.allocatable lacks cpu: no pod would fit"),
        (
            GOOD.replace("allocatable", "other"),
            "document 1 (a): status.allocatable lacks cpu, memory, pods: no pod would fit",
        ),
        (
            GOOD.replace("allocatable: {", "capacity: [], x: {"),
            "document 1 (a): status.capacity must map resources to quantities",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    assert problems(tmp_path, text) == [problem]


def test_every_bad_node_is_named_at_once(tmp_path: Path) -> None:
    assert len(problems(tmp_path, f"7\n---\n{GOOD}\n---\n8")) == 2


def test_capacity_and_allocatable_stand_in_for_each_other() -> None:
    node = make_node("a", gpus=2)
    assert completed(node)["status"]["capacity"]["nvidia.com/gpu"] == "2"
    other = node | {"status": {"capacity": {"cpu": "1"}}}
    assert completed(other)["status"]["allocatable"] == {"cpu": "1"}


@pytest.mark.parametrize(("ready", "taint", "usable"), [("True", "gpu", True), ("False", "gpu", False)])
def test_a_ready_node_is_usable_whatever_taints_its_owner_gave_it(ready: str, taint: str, usable: bool) -> None:
    node = make_node("a", taints=[{"key": taint, "effect": "NoSchedule"}])
    assert is_usable(node | {"status": {"conditions": [{"type": "Ready", "status": ready}]}}) == usable


def test_a_new_node_is_not_usable_until_its_first_taint_is_gone() -> None:
    node = make_node("a", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    assert not is_usable(node | {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})

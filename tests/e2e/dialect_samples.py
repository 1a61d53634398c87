"""A gang in the words of each system: the sample pods of tests/wire/dialects/, as often as the gang needs members."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.cluster import Object
from extender.wire.cards.kubeshare import KEYS_2

FOLDER = Path(__file__).parent.parent / "wire" / "dialects"

GPU = "nvidia.com/gpu"

_INDEX_LABELS = ("replica-index", "rank-index", "replica-id", "rank", "task-index")
"""What numbers a job's pods, in whichever domain."""


@dataclass(frozen=True)
class Sample:
    """One document of a file, and how many pods like each of its own make the gang whole."""

    file: str
    document: int
    members: Mapping[str, int]

    @property
    def name(self) -> str:
        """Return what tells this sample from the others."""
        return f"{self.file}-{self.document}"

    @property
    def size(self) -> int:
        """Return the number of members."""
        return sum(self.members.values())

    def objects(self) -> list[Object]:
        """Return the PodGroups and the pods, without what belongs to the namespace that they are written for."""
        documents = list(yaml.safe_load_all((FOLDER / f"{self.file}.yaml").read_text(encoding="utf-8")))
        found = copy.deepcopy(documents[self.document - 1]["objects"])
        groups = [_moved(each) for each in found if each["kind"] == "PodGroup"]
        return [*groups, *(pod for each in found if each["kind"] == "Pod" for pod in self._pods_like(each))]

    def gpus_a_member(self) -> int:
        """Return how many GPUs a member asks for."""
        pod = next(each for each in self.objects() if each["kind"] == "Pod")
        return int(pod["spec"]["containers"][0]["resources"]["limits"][GPU])

    def _pods_like(self, sample: Object) -> Iterator[Object]:
        for index in range(self.members.get(sample["metadata"]["name"], 0)):
            yield _numbered(_moved(sample), index)


def _moved(sample: Object) -> Object:
    # Its owner does not exist here, and the garbage collector would delete it for that.
    nowhere = {"namespace", "creationTimestamp", "ownerReferences"}
    metadata = {key: value for key, value in sample["metadata"].items() if key not in nowhere}
    return {**sample, "metadata": metadata}


def _numbered(sample: Object, index: int) -> Object:
    """Return a pod like this one, of this index; it asks for a whole GPU where the sample asks for none, or a share."""
    pod = copy.deepcopy(sample)
    metadata = pod["metadata"]
    metadata["labels"] = {key: text for key, text in metadata.get("labels", {}).items() if key not in KEYS_2}
    metadata["name"] = f"{metadata['name']}-{index}"
    for label in metadata.get("labels", {}):
        if label.rpartition("/")[2] in _INDEX_LABELS:
            metadata["labels"][label] = str(index)
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("limits", {}).setdefault(GPU, "1")
    return pod

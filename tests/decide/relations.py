"""Random pods that ask things of each other, and a naive reading of the rules to judge them by.

The oracle keeps no counts: it asks the whole cluster anew for each question, in the words of the Kubernetes API.
"""

from collections.abc import Iterator

from hypothesis import strategies as st

from extender.decide.selectors import selects_node
from extender.model.node import Node, NodeRoom, Taint
from extender.model.pod import AffinityTerm, Occupant, Relations, Requirement, SpreadConstraint, Tags, Toleration
from extender.model.snapshot import Snapshot
from tests.builders import a_node, a_shape

NAMESPACES = {"a": {"team": "red"}, "b": {"team": "blue", "env": "test"}}
KEYS = ["zone", "host"]

_values = st.sampled_from(["x", "y"])
_requirement = st.one_of(
    st.builds(Requirement, st.sampled_from(["app", "tier"]), st.sampled_from(["In", "NotIn"]), st.tuples(_values)),
    st.builds(Requirement, st.sampled_from(["app", "tier"]), st.sampled_from(["Exists", "DoesNotExist"])),
)
_selector = st.one_of(st.none(), st.lists(_requirement, max_size=1).map(tuple))
_red = st.sampled_from([Requirement("team", "In", ("red",)), Requirement("env", "DoesNotExist")])
_term = st.builds(
    AffinityTerm,
    st.sampled_from(KEYS),
    _selector,
    st.lists(st.sampled_from(list(NAMESPACES)), max_size=2).map(tuple),
    st.one_of(
        st.none(),
        st.lists(st.builds(Requirement, st.just("team"), st.just("In"), st.just(("red",))), max_size=1).map(tuple),
    ),
)
_constraint = st.builds(
    SpreadConstraint,
    st.integers(1, 2),
    st.sampled_from(KEYS),
    _selector,
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
relations = st.one_of(
    st.none(),
    st.builds(
        Relations,
        st.lists(_term, max_size=2).map(tuple),
        st.lists(_term, max_size=1).map(tuple),
        st.lists(_constraint, max_size=2).map(tuple),
    ),
)
_shape = st.builds(
    lambda relations, selector, tolerant: a_shape(
        relations=relations,
        node_selector=selector,
        tolerations=(Toleration("pool", "Exists"),) if tolerant else (),
    ),
    relations,
    st.sampled_from([{}, {}, {"disk": "ssd"}]),
    st.booleans(),
)
_tags = st.builds(
    Tags,
    st.sampled_from(list(NAMESPACES)),
    st.dictionaries(st.sampled_from(["app", "tier"]), _values),
)
occupants = st.builds(Occupant, _shape, _tags, st.booleans())
incoming = st.builds(Occupant, _shape, _tags)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    """Draw one to four nodes, some without a zone, with a taint or the label that some pods select."""
    return [
        a_node(
            f"n{index}",
            gpu=draw(st.integers(1, 4)),
            labels={"host": f"n{index}"}
            | draw(st.sampled_from([{}, {"zone": "1"}, {"zone": "2"}]))
            | draw(st.sampled_from([{}, {"disk": "ssd"}])),
            taints=draw(st.sampled_from([(), (), (Taint("pool"),)])),
        )
        for index in range(draw(st.integers(1, 4)))
    ]


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw a cluster with some pods on each node."""
    rooms = {}
    for node in draw(nodes()):
        room = NodeRoom(node)
        for pod in draw(st.lists(occupants, max_size=2)):
            room = room.having(pod)
        rooms[node.name] = room
    return Snapshot(1, rooms, NAMESPACES)


def objections(pod: Occupant, node: Node, snapshot: Snapshot) -> set[str]:
    """Return every rule by which pods that are there keep this pod off the node."""
    asked = pod.shape.relations or Relations()
    found = set()
    for constraint in asked.spread:
        if constraint.topology_key not in node.labels:
            found.add("label missing")
        elif _skew(constraint, pod, node, snapshot) > constraint.max_skew:
            found.add("too uneven")
    if asked.affinity and not _has_company(asked.affinity, pod, node, snapshot):
        found.add("affinity")
    everybody = list(_pods(snapshot))
    if any(
        _share(term, node, there) and _about(term, other) for term in asked.anti_affinity for other, there in everybody
    ):
        found.add("anti-affinity")
    for other, there in everybody:
        terms = other.shape.relations.anti_affinity if other.shape.relations else ()
        if any(_share(term, node, there) and _about(term, pod) for term in terms):
            found.add("repelled")
    return found


def _skew(constraint: SpreadConstraint, pod: Occupant, node: Node, snapshot: Snapshot) -> int:
    counts = {
        room.node.labels[constraint.topology_key]: 0
        for room in snapshot.rooms.values()
        if _is_place(constraint, pod, room.node)
    }
    for other, there in _pods(snapshot):
        alike = other.tags.namespace == pod.tags.namespace and not other.terminating
        if alike and constraint.selector and _selects(constraint.selector, other) and _is_place(constraint, pod, there):
            counts[there.labels[constraint.topology_key]] += 1
    fewest = min(counts.values()) if counts and len(counts) >= constraint.min_domains else 0
    here = counts.get(node.labels[constraint.topology_key], 0)
    return here + _selects(constraint.selector, pod) - fewest


def _is_place(constraint: SpreadConstraint, pod: Occupant, node: Node) -> bool:
    spread = pod.shape.relations.spread if pod.shape.relations else ()
    tolerated = not node.taints or bool(pod.shape.tolerations)
    return (
        all(each.topology_key in node.labels for each in spread)
        and (not constraint.honors_affinity or selects_node(pod.shape, node))
        and (not constraint.honors_taints or tolerated)
    )


def _has_company(terms: tuple[AffinityTerm, ...], pod: Occupant, node: Node, snapshot: Snapshot) -> bool:
    if any(term.topology_key not in node.labels for term in terms):
        return False
    wanted = [there for other, there in _pods(snapshot) if all(_asks_about(term, other) for term in terms)]
    if all(any(_share(term, node, there) for there in wanted) for term in terms):
        return True
    nobody = not any(term.topology_key in there.labels for term in terms for there in wanted)
    return nobody and all(_asks_about(term, pod) for term in terms)


def _pods(snapshot: Snapshot) -> Iterator[tuple[Occupant, Node]]:
    return ((pod, room.node) for room in snapshot.rooms.values() for pod in room.pods)


def _share(term: AffinityTerm, node: Node, other: Node) -> bool:
    return node.labels.get(term.topology_key, "") == other.labels.get(term.topology_key, " ")


def _asks_about(term: AffinityTerm, pod: Occupant) -> bool:
    """Read a term of the pod in question: what selects a namespace without labels selects any."""
    wanted = term.namespace_selector
    anywhere = wanted is not None and all(_holds(each, None) for each in wanted)
    return _selects(term.selector, pod) if anywhere else _about(term, pod)


def _about(term: AffinityTerm, pod: Occupant) -> bool:
    space, wanted = NAMESPACES[pod.tags.namespace], term.namespace_selector
    in_space = wanted is not None and all(_holds(each, space.get(each.key)) for each in wanted)
    return (pod.tags.namespace in term.namespaces or in_space) and _selects(term.selector, pod)


def _selects(selector: tuple[Requirement, ...] | None, pod: Occupant) -> bool:
    return selector is not None and all(_holds(each, pod.tags.labels.get(each.key)) for each in selector)


def _holds(requirement: Requirement, value: str | None) -> bool:
    return {
        "In": value in requirement.values,
        "NotIn": value not in requirement.values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[requirement.operator]

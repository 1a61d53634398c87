"""What a pod asks of the pods around it: required affinity, required anti-affinity and hard spread constraints.

Mirrors GetAffinityTerms of kube-scheduler's framework and filterTopologySpreadConstraints of PodTopologySpread.
"""

from extender.model.pod import AffinityTerm, Relations, Requirement, SpreadConstraint
from extender.wire import core_v1
from extender.wire.label_selector import selector_of


def relations_of(pod: core_v1.Pod) -> Relations | None:
    """Return what the pod asks of the pods around it; None where that is nothing."""
    affinity, spread = pod.spec.affinity or core_v1.Affinity(), pod.spec.topology_spread_constraints
    if not (affinity.pod_affinity or affinity.pod_anti_affinity or spread):
        return None
    relations = Relations(
        affinity=_terms(affinity.pod_affinity, pod.metadata.namespace),
        anti_affinity=_terms(affinity.pod_anti_affinity, pod.metadata.namespace),
        spread=tuple(
            _constraint(each, pod.metadata.labels or {})
            for each in spread or ()
            if each.when_unsatisfiable == "DoNotSchedule"
        ),
    )
    return relations if relations.affinity or relations.anti_affinity or relations.spread else None


def _terms(affinity: core_v1.PodAffinity | None, own_namespace: str) -> tuple[AffinityTerm, ...]:
    required = (affinity.required if affinity else None) or ()
    return tuple(_term(term, own_namespace) for term in required)


def _term(term: core_v1.PodAffinityTerm, own_namespace: str) -> AffinityTerm:
    named = tuple(sorted(term.namespaces or ()))
    if not named and term.namespace_selector is None:
        named = (own_namespace,)
    return AffinityTerm(
        term.topology_key, selector_of(term.label_selector), named, selector_of(term.namespace_selector)
    )


def _constraint(constraint: core_v1.TopologySpreadConstraint, labels: dict[str, str]) -> SpreadConstraint:
    selector = selector_of(constraint.label_selector)
    if selector is not None:
        alike = [Requirement(key, "In", (labels[key],)) for key in constraint.match_label_keys or () if key in labels]
        selector = tuple(dict.fromkeys([*selector, *alike]))  # the API server may have merged them already
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=constraint.min_domains or 1,
        honors_affinity=constraint.node_affinity_policy != "Ignore",
        honors_taints=constraint.node_taints_policy == "Honor",
    )

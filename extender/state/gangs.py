"""Which gangs are there, who belongs to them, and what was declared of them?

An index over pods, PodGroups and jobs: it holds nothing that these do not say.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import structs

from extender.decide.declaration import declare_gang, needed_of, overruled
from extender.decide.group_status import REPORTED_APIS
from extender.model.claim import GangClaim, GangKey, JobKey, namespace_of
from extender.model.declaration import Undeclared
from extender.model.gang import Gang
from extender.model.job import JobRole, TrainingJob
from extender.model.pod import Pod, PodUid
from extender.model.pod_group import PodGroup
from extender.model.topology import Level


class GangIndex:
    """The gangs by key. `scheduler_names` are the schedulers whose unbound pods come to us, `levels` the network's."""

    def __init__(self, scheduler_names: Collection[str], levels: Collection[Level] = ()) -> None:
        self._scheduler_names = frozenset(scheduler_names)
        self._levels = tuple(levels)
        self._members: dict[GangKey, dict[PodUid, Pod]] = {}
        self._views: dict[GangKey, Gang | Undeclared] = {}
        self._pod_groups: dict[tuple[str, GangKey], PodGroup] = {}
        self._pod_groups_of_job: dict[JobKey, dict[tuple[str, GangKey], PodGroup]] = {}
        self._jobs: dict[JobKey, TrainingJob] = {}
        self._gangs_of_job: dict[JobKey, Counter[GangKey]] = {}
        """By job: the gangs that its pods are in, with how many of them are in each."""
        self._ran: set[GangKey] = set()
        self._changes = 0
        self._editions: dict[GangKey, int] = {}
        self._names: dict[GangKey, tuple[GangKey, ...]] = {}
        """By gang: those of its namespace that it is to be bound together with."""
        self._named_by: dict[GangKey, set[GangKey]] = {}

    def __iter__(self) -> Iterator[GangKey]:
        """Yield the key of every gang with a pod, whatever its phase."""
        return iter(self._members)

    def __contains__(self, key: GangKey) -> bool:
        """Whether the gang has a pod, whatever its phase."""
        return key in self._members

    def put(self, pod: Pod) -> None:
        """Add or change a member; pods without a valid claim are passed over."""
        if isinstance(pod.gang, GangClaim):
            members = self._members.setdefault(pod.gang.key, {})
            known = members.get(pod.uid)
            members[pod.uid] = pod
            self._views.pop(pod.gang.key, None)
            if known is None or _but_for_its_sleep(known) != _but_for_its_sleep(pod):
                self._note_change(pod.gang.key)
            self._count_in_job(known, -1)
            self._count_in_job(pod, 1)
            if pod.gang.job:
                self._look_again(self._leaders(pod.gang.job))

    def drop(self, pod: Pod) -> None:
        """Forget a member."""
        if isinstance(pod.gang, GangClaim) and pod.gang.key in self._members:
            members = self._members[pod.gang.key]
            self._count_in_job(members.pop(pod.uid, None), -1)
            self._views.pop(pod.gang.key, None)
            self._note_change(pod.gang.key)
            if not members:
                del self._members[pod.gang.key]
                del self._editions[pod.gang.key]
                self._ran.discard(pod.gang.key)
                self._note_names(pod.gang.key, ())
            if pod.gang.job:
                self._look_again(self._leaders(pod.gang.job))

    def replaced_by(self, pod: Pod) -> list[Pod]:
        """Return the older unbound members whose place the member takes."""
        if not pod.rank or pod.gang is None:
            return []
        members = self._members[pod.gang.key].values()
        return [each for each in members if each.seat == pod.seat and not each.node_name and _age(each) < _age(pod)]

    def put_pod_group(self, group: PodGroup) -> set[GangKey]:
        """Add or change a PodGroup; return the gangs for which that may change something."""
        known = self._pod_groups.get((group.api, group.key))
        self._drop_pod_group(known)
        self._pod_groups[group.api, group.key] = group
        self._pod_groups_of_job.setdefault(group.job, {})[group.api, group.key] = group
        if known is not None and structs.replace(known, status=group.status) == group:
            return set()
        return self._look_again({group.key} | self._leaders(group.job))

    def drop_pod_group(self, api: str, key: GangKey) -> set[GangKey]:
        """Forget a PodGroup; return the gangs for which that may change something."""
        known = self._pod_groups.get((api, key))
        self._drop_pod_group(known)
        return self._look_again({key} if known else set())

    def our_pod_groups(self, key: GangKey) -> list[PodGroup]:
        """Return the PodGroups of this name of which a member, or else the job, names one of our schedulers."""
        groups = [self._pod_groups[api, key] for api in REPORTED_APIS if (api, key) in self._pod_groups]
        return [group for group in groups if self._is_ours(group)]

    def members_of(self, group: PodGroup) -> list[Pod]:
        """Return the pods that claim the PodGroup's gang, whatever their phase."""
        members = self._members.get(group.key, {}).values()
        return [pod for pod in members if isinstance(pod.gang, GangClaim) and pod.gang.pod_group == group.api]

    def pod_groups_of_job(self, job: JobKey) -> list[GangKey]:
        """Return the keys of the PodGroups that a job made."""
        return [key for _, key in self._pod_groups_of_job.get(job, ())]

    def of_job(self, job: JobKey) -> list[GangKey]:
        """Return the keys of the gangs that a job's pods are in: one, or one for each role."""
        return sorted(self._gangs_of_job.get(job, ()))

    def pod_group_keys(self, api: str) -> list[GangKey]:
        """Return the keys of the PodGroups of one API group."""
        return [key for each, key in self._pod_groups if each == api]

    def put_job(self, job: TrainingJob) -> set[GangKey]:
        """Add or change a job; return the gangs for which that may change something.

        Of its roles only those count whose pods come to us, if any do by their templates.
        """
        ours = tuple(role for role in job.roles if role.scheduler_name in self._scheduler_names)
        job = structs.replace(job, roles=ours or job.roles)
        if self._jobs.get(job.key) == job:
            return set()
        self._jobs[job.key] = job
        return self._look_again(self._gangs_of_job.get(job.key, ()))

    def drop_job(self, key: JobKey) -> set[GangKey]:
        """Forget a job; return the gangs for which that may change something."""
        return self._look_again(self._gangs_of_job.get(key, ()) if self._jobs.pop(key, None) else ())

    def job_keys(self, kind: str) -> list[JobKey]:
        """Return the keys of the jobs of one kind, in lower case."""
        return [key for key in self._jobs if key.split("/")[1] == kind]

    def get(self, key: GangKey) -> Gang | None:
        """Return the gang, or None when no member of it counts or nobody says how many it needs."""
        gang = self._look(key)
        return gang if isinstance(gang, Gang) and (gang.waiting or gang.bound) else None

    def edition(self, key: GangKey) -> int:
        """Return what is another number after each change of the gang, but for who of it sleeps in kube-scheduler."""
        return self._editions.get(key, 0)

    def is_waiting(self, pod: Pod) -> bool:
        """Whether the pod is a member that we are to place."""
        alive = not (pod.finished or pod.terminating or pod.gated)
        return alive and not pod.node_name and self.serves(pod)

    def serves(self, pod: Pod) -> bool:
        """Whether the pod names one of our schedulers."""
        return pod.scheduler_name in self._scheduler_names

    def held(self, key: GangKey) -> list[Pod]:
        """Return the pods that claim the gang and carry our gate, whether they are ours to place or not."""
        members = self._members.get(key, {}).values()
        return [pod for pod in members if pod.held and not (pod.finished or pod.terminating)]

    def to_place(self, key: GangKey) -> list[Pod]:
        """Return the members that we are to place, also of a gang that is not declared; without those replaced."""
        gang = self._look(key)
        if isinstance(gang, Gang):
            return list(gang.waiting)
        return [pod for pod in self._members.get(key, {}).values() if self.is_waiting(pod)]

    def undeclared(self, key: GangKey) -> Undeclared | None:
        """Return what is missing when nobody says how many members the gang needs."""
        gang = self._look(key)
        return gang if isinstance(gang, Undeclared) else None

    def overruled(self, key: GangKey) -> list[Pod]:
        """Return the members that say something else of their gang than the oldest one that says anything."""
        gang = self.get(key)
        members: Sequence[Pod] = [*gang.waiting, *gang.bound] if gang else []
        if len({id(pod.gang) for pod in members}) < 2:  # equal claims are one object: see wire/objects.py
            return []
        members = _oldest_first(members)
        verdicts = overruled([pod.gang for pod in members if isinstance(pod.gang, GangClaim)])
        return [pod for pod, is_overruled in zip(members, verdicts, strict=True) if is_overruled]

    def together(self, gang: Gang) -> dict[GangKey, Gang | None]:
        """Return the gangs that are bound together with this one, and itself; None for one that is not there.

        Nor is one of another namespace that does not name this gang as well: nobody is bound, held up or looked at by
        what strangers write.
        """
        return {key: self._partner(gang, key) for key in sorted({gang.key, *gang.groups})}

    def concerned(self, keys: Iterable[GangKey]) -> set[GangKey]:
        """Return these gangs, and those whose fate may change with theirs: either names the other one.

        Of those whom strangers name, nobody is returned.
        """
        found = set(keys)
        for key in tuple(found):
            found |= self._named_by.get(key, set())
            if (gang := self.get(key)) is not None and gang.groups:
                found.update(each for each, partner in self.together(gang).items() if partner is not None)
        return found

    def missing_groups(self, gang: Gang) -> list[GangKey]:
        """Return the gangs that are to be bound together with this one, and of which there is no pod.

        Of another namespace's gang that does not name this one back the same is said, be it there or not.
        """
        return [key for key in gang.groups if key not in self._members or not self._is_agreed(gang, key)]

    def _partner(self, gang: Gang, key: GangKey) -> Gang | None:
        return self.get(key) if self._is_agreed(gang, key) else None

    def _is_agreed(self, gang: Gang, key: GangKey) -> bool:
        if namespace_of(key) == namespace_of(gang.key):
            return True
        other = self.get(key)
        return other is not None and gang.key in other.groups

    def _is_ours(self, group: PodGroup) -> bool:
        job = self._jobs.get(group.job)
        names = {pod.scheduler_name for pod in self.members_of(group)}
        names.update(role.scheduler_name for role in (job.roles if job else ()))
        return not self._scheduler_names.isdisjoint(names)

    def _look(self, key: GangKey) -> Gang | Undeclared | None:
        if key not in self._views and key in self._members:
            self._views[key] = self._view(key)
        return self._views.get(key)

    def _look_again(self, keys: Collection[GangKey]) -> set[GangKey]:
        for key in keys:
            self._views.pop(key, None)
            if key in self._members:
                self._note_change(key)
        return {key for key in keys if key in self._members}

    def _view(self, key: GangKey) -> Gang | Undeclared:
        gang = self._gang(key)
        if isinstance(gang, Gang) and gang.bound and gang.satisfied:
            self._ran.add(key)
        else:
            self._ran.discard(key)
        groups = gang.groups if isinstance(gang, Gang) else ()
        self._note_names(key, tuple(each for each in groups if namespace_of(each) == namespace_of(key)))
        return gang

    def _note_change(self, key: GangKey) -> None:
        self._changes += 1
        self._editions[key] = self._changes

    def _note_names(self, key: GangKey, names: tuple[GangKey, ...]) -> None:
        for former in self._names.pop(key, ()):
            self._named_by[former].discard(key)
            if not self._named_by[former]:
                del self._named_by[former]
        others = tuple(each for each in names if each != key)
        for name in others:
            self._named_by.setdefault(name, set()).add(key)
        if others:
            self._names[key] = others

    def _gang(self, key: GangKey) -> Gang | Undeclared:
        members = _oldest_first(self._members[key].values())
        # What an earlier job of the same name has left behind is heard last.
        alive_first = sorted(members, key=lambda pod: pod.finished or pod.terminating)
        claims = [pod.gang for pod in alive_first if isinstance(pod.gang, GangClaim)]
        pod_group, job = self._pod_groups.get((claims[0].pod_group, key)), self._jobs.get(claims[0].job)
        declared = declare_gang(claims, pod_group, job, self._levels)
        if isinstance(declared, Undeclared):
            return declared
        unbound = [pod for pod in members if self.is_waiting(pod)]
        bound = tuple(pod for pod in members if pod.node_name and not pod.finished and not pod.terminating)
        youngest = {pod.seat: pod for pod in unbound}
        return Gang(
            waiting=tuple(pod for pod in unbound if youngest[pod.seat] is pod),
            bound=bound,
            # Of a gang that runs. What an earlier job of the same name has left behind does not count for a new one.
            succeeded=tuple(pod for pod in members if pod.succeeded) if bound else (),
            ran=bool(bound) and key in self._ran,
            followers=self._followers(job, claims[0].job_role or (pod_group.job_role if pod_group else "")),
            **structs.asdict(declared),
        )

    def _leaders(self, key: JobKey) -> set[GangKey]:
        """Return the gangs of which followers may be made, where the job's pods are made in stages."""
        job = self._jobs.get(key)
        return set(self._gangs_of_job.get(key, ())) if job is not None and job.in_stages else set()

    def _followers(self, job: TrainingJob | None, role: str) -> tuple[JobRole, ...]:
        """Return the roles of a job made in stages that come after this one and of which there is no pod yet."""
        if job is None or not job.in_stages or not role:
            return ()
        made = {pod.role for key in self._gangs_of_job[job.key] for pod in self._members[key].values()}
        later = [each for each in job.roles if each.name > role and each.name not in made]
        return tuple(structs.replace(each, replicas=self._needed_of(job, each.name)) for each in later)

    def _needed_of(self, job: TrainingJob, role: str) -> int:
        groups = [each for each in self._pod_groups_of_job.get(job.key, {}).values() if each.job_role == role]
        return next((each.min_available for each in groups if each.min_available), None) or needed_of(job, role) or 0

    def _drop_pod_group(self, group: PodGroup | None) -> None:
        if group is not None:
            del self._pod_groups[group.api, group.key]
            of_job = self._pod_groups_of_job[group.job]
            del of_job[group.api, group.key]
            if not of_job:
                del self._pod_groups_of_job[group.job]

    def _count_in_job(self, pod: Pod | None, change: int) -> None:
        if pod is None or not isinstance(pod.gang, GangClaim) or not pod.gang.job:
            return
        gangs = self._gangs_of_job.setdefault(pod.gang.job, Counter())
        gangs[pod.gang.key] += change
        if not gangs[pod.gang.key]:
            del gangs[pod.gang.key]
        if not gangs:
            del self._gangs_of_job[pod.gang.job]


def _but_for_its_sleep(pod: Pod) -> Pod:
    """Return a member without what kube-scheduler notes on it each time that it tried it in vain."""
    return structs.replace(pod, turned_away=False, nominated_node="")


def _oldest_first(pods: Collection[Pod]) -> Sequence[Pod]:
    return sorted(pods, key=_age)


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created_at, pod.name

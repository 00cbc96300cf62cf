"""A storage policy: which datastores will do, by their tags; a namespace's claims name it. (Solution setup: storage class bf-k8s.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from bfinfra.backends.vcenter.policies import Policy, StoragePolicies
from bfinfra.model import kind
from bfinfra.model.document import Document
from bfinfra.model.errors import Denied, Missing, Refusal
from bfinfra.model.kind import Around, Change, Need, Report, Seen, differences
from bfinfra.model.mark import Mark, above, below
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, Places, Use, holds
from bfinfra.model.site import Site
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

CHANGE = holds("policies", "StorageProfile.Update")
VIEW = holds("policies", "StorageProfile.View")


class Spec(kind.Spec):
    """What a user writes for one policy; its name is the policy's name in vCenter, and in lower case the storage class's in namespaces."""

    name_pattern = r"[^/\n]{1,80}"
    name_rule = "no slash, at most 80 characters"

    tags: Annotated[dict[str, Annotated[tuple[str, ...], Field(min_length=1)]], Field(min_length=1)]
    """Category → tags: a datastore fits that has, of each category, one of these. Category and tags are there already."""
    description: str = ""
    """Free text; bfinfra keeps its mark in the last line under it."""


@dataclass(frozen=True, kw_only=True)
class State(kind.State):
    """What vCenter says."""

    policy: Policy


@dataclass(frozen=True)
class Facts:
    """The tags that there are, of each category that is wanted."""

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Create(kind.Step):
    """create the storage policy {name}"""

    rights = (CHANGE,)
    name: str
    policy: Policy

    @property
    def exclusive(self) -> bool:
        """Its name is taken once."""
        return True


@dataclass(frozen=True, kw_only=True)
class Update(kind.Step):
    """change the storage policy {name}; what lies on datastores stays there"""

    rights = (CHANGE,)
    name: str
    policy: Policy


@dataclass(frozen=True, kw_only=True)
class Delete(kind.Step):
    """delete the storage policy {name}"""

    destructive = True
    rights = (CHANGE, VIEW)
    uses = (Use.DESTROY,)
    name: str
    id: str


class StoragePolicy(kind.Kind[Spec, State]):
    """A storage policy by tags."""

    document = Document.SINGAPORE_POC
    acts = (Create, Update, Delete)
    reads = (holds(VCENTER, *READ),)
    looks = (VIEW,)

    def __init__(self, vcenter: VCenter, site: Site) -> None:
        self._policies = StoragePolicies(vcenter.session, vcenter.rest)
        self._named = any(key.kind == "storage_policy" for key in site.resources)

    def observe(self, wanted: Mapping[str, Spec | None], needs: Mapping[Key, Need], *, others: bool = True) -> Seen:
        """One list; then what is wanted or ours as a whole. An account that may not even look at policies has made none for a site that names none, nor has anybody on a server that has none (vcsim)."""
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        try:
            listed = self._policies.list()
        except (Denied, Missing):
            if wanted or self._named:
                raise
            return Seen({})
        found = [each for each in listed if each.name in wanted or (others and _mark(each))]
        states = {each.name: State(mark=_mark(each), policy=each) for each in self._policies.read(each.id for each in found)}
        return Seen(states, Facts(self._policies.tags(category for spec in specs.values() for category in spec.tags)))

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, around: Around) -> Sequence[kind.Step]:
        """Create, change, delete."""
        if spec is None:
            return () if state is None else (Delete(name=name, id=state.policy.id),)
        _check(spec, around.facts)
        policy = Policy(name, below(spec.description, around.mark.seal(spec.applied())), {category: tuple(sorted(set(tags))) for category, tags in spec.tags.items()})
        if state is None:
            return (Create(name=name, policy=policy, changes=differences(None, spec.applied())),)
        found = kind.changes(spec, state.mark, _drift(state.policy, policy))
        return (Update(name=name, policy=replace(policy, id=state.policy.id), changes=found),) if found else ()

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, Need], datacenter: str) -> Places:
        """Policies are vCenter's own."""
        return {"policies": (ROOT,)}

    def run(self, step: kind.Step, report: Report) -> None:
        """One call."""
        match step:
            case Create(policy=policy):
                self._policies.create(policy)
            case Update(policy=policy):
                self._policies.update(policy)
            case Delete(id=identity):
                self._policies.delete(identity)
            case _:
                raise AssertionError(step)


def _mark(found: Policy) -> Mark | None:
    """Its own mark; none where it was copied from another policy with the description."""
    mark = Mark.decode(found.description)
    return mark if mark is not None and mark.address == f"storage_policy/{found.name}" else None


def _view(policy: Policy) -> dict[str, Any]:
    """The policy as a site writes it."""
    rules: dict[str, Any] = {"description": above(policy.description), "tags": {category: list(tags) for category, tags in policy.tags.items()}}
    return rules | ({"rules": "others than tags"} if policy.others else {})


def _drift(now: Policy, wanted: Policy) -> Sequence[Change]:
    return differences(_view(now), _view(wanted))


def _check(spec: Spec, facts: Facts) -> None:
    """Refusal for a category or tag that isn't there."""
    for category, tags in spec.tags.items():
        if category not in facts.tags:
            raise Refusal(f"there is no category of tags {category}", field=f"tags.{category}", why="a policy asks for tags that datastores bear", next="make it first: govc tags.category.create")
        for tag in tags:
            if tag not in facts.tags[category]:
                raise Refusal(f"there is no tag {tag} in {category}", field=f"tags.{category}", next=nearest(tag, facts.tags[category]))

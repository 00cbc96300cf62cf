"""The kind storage_policy: observe, run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.backends.vcenter.places import meant
from bfinfra.backends.vcenter.policies import Policy, StoragePolicies
from bfinfra.backends.vcenter.tagging import Category, Tagging
from bfinfra.kinds.vcenter.storage_policy.decide import RULES, decide
from bfinfra.kinds.vcenter.storage_policy.spec import Spec
from bfinfra.kinds.vcenter.storage_policy.state import NAME, Own, State, StoragePolicyFacts, fitting
from bfinfra.kinds.vcenter.storage_policy.steps import (
    VIEW,
    Attach,
    Create,
    Delete,
    Detach,
    MakeCategory,
    MakeTag,
    RemoveCategories,
    RemoveTag,
    Update,
)
from bfinfra.model import kind
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import Forbidden, Missing
from bfinfra.model.kind import Observation, Report
from bfinfra.model.mark import Mark, above, below
from bfinfra.model.readiness import READY, Readiness, Ready
from bfinfra.model.refs import Key
from bfinfra.model.rights import READ, ROOT, VCENTER, PrivilegePlaces, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter

__all__ = ["Spec", "State", "StoragePolicy"]


class StoragePolicy(kind.Kind[Spec, State]):
    """A storage policy by tags."""

    document = Document.SINGAPORE_POC
    step_types = (Create, Update, Delete, MakeCategory, MakeTag, Detach, Attach, RemoveTag, RemoveCategories)
    survey_privileges = (holds(VCENTER, *READ),)
    resource_privileges = (VIEW,)

    def __init__(self, vcenter: VCenter, site: Site) -> None:
        self._policies, self._tagging = StoragePolicies(vcenter.session, vcenter.rest), Tagging(vcenter.rest)
        self._vcenter, self._site = vcenter, site.name
        named = [spec for key, spec in site.resources.items() if key.kind == "storage_policy"]
        self._named, self._tags = bool(named), any(spec.tag for spec in named)

    def observe(
        self,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """Reads the list of policies, then those in full that the site wants or that are its own, and the
        categories that these name.

        If the account may not read policies, or the server has none (vcsim), a site without policies gets an
        empty result.
        """
        specs = {name: spec for name, spec in wanted.items() if spec is not None}
        try:
            listed = self._policies.list()
        except (Forbidden, Missing):
            if wanted or self._named:
                raise
            return Observation({})
        found = [each for each in listed if each.name in wanted or (include_unlisted and _mark(each))]
        categories = self._categories(specs, found)
        own = {each.tag.id: each for home in categories for each in self._own(home)}
        asked = {
            each.name: each
            for each in (
                self._policies.read_existing(listed)
                if own
                else self._policies.read(each.id for each in found)
            )
        }
        names = (
            {each.name for each in found}
            | {_of(each.tag.description) for each in own.values()}
            | {_of(home.description) for home in categories if self._empty(home)}
        )
        states = {
            name: self._state(
                name,
                asked.get(name) if name in {f.name for f in found} else None,
                categories,
                own.values(),
                asked.values(),
            )
            for name in names
            if include_unlisted or name in wanted
        }
        states = {
            name: state
            for name, state in states.items()
            if name in specs or state.policy or state.empty or not all(each.users for each in state.own)
        }
        tags = [spec.tag for spec in specs.values() if spec.tag]
        return Observation(
            states,
            StoragePolicyFacts(
                {home.name: home for home in categories},
                self._datastores([text for tag in tags for text in tag.datastores]) if tags else {},
            ),
        )

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterator[Description]:
        """Every policy that asks for tags and nothing else; none if the server has no policies."""
        try:
            found = self._policies.read_existing(self._policies.list())
        except (Forbidden, Missing):
            return
        for each in found:
            rules = {category: list(tags) for category, tags in each.tags.items()}
            yield Description(
                each.name,
                {"tags": rules, "description": above(each.description)},
                State(mark=_mark(each), policy=each),
                left_out="it asks for more than tags" if each.others or not rules else "",
            )

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The root, as policies and tags are vCenter's own."""
        return {"policies": (ROOT,), "tags": (ROOT,) if spec.tag else ()}

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready at once; reports if no datastore has its tags."""
        return (
            READY if spec is None or state.fits else Readiness(Ready.READY, note="no datastore has its tags")
        )

    def run(self, step: Step, report: Report) -> None:
        """Runs one step, in one call; a tag's mark is written in a call before."""
        match step:
            case Create(policy=policy):
                self._policies.create(policy)
            case Update(policy=policy):
                self._policies.update(policy, tags=any(map(step.writes, RULES)))
            case Delete(id=identity):
                self._policies.delete(identity)
            case _:
                self._tag(step)

    def _tag(self, step: Step) -> None:
        tagging = self._tagging
        match step:
            case MakeCategory(category=name, mark=mark):
                tagging.make_category(name, below("", mark))
            case MakeTag(tag=name, home=home, mark=mark):
                tagging.make_tag(home, name, below("", mark))
            case Detach(id=tag, datastores=datastores):
                tagging.detach(tag, datastores)
            case Attach(id=tag, datastores=datastores, mark=mark):
                tagging.describe(tag, below("", mark))
                tagging.attach(tag, datastores)
            case RemoveTag(id=tag, home=home):
                tagging.remove(tag)
                if home:
                    tagging.remove_empty(home)
            case RemoveCategories(ids=ids):
                for each in ids:
                    tagging.remove_empty(each)
            case _:
                raise AssertionError(step)

    def _datastores(self, texts: Iterable[str]) -> Mapping[str, str]:
        """Ids of datastores by what the site calls them."""
        found = meant(self._vcenter.inventory.read().datastores, texts)
        return {text: each.moid for text, each in found.items()}

    def _categories(self, specs: Mapping[str, Spec], found: Iterable[Policy]) -> tuple[Category, ...]:
        """The categories that the specs or this site's policies name. Makes no request if there are none."""
        before = [
            tag
            for each in found
            if (mark := _mark(each)) and isinstance(tag := (mark.applied or {}).get("tag"), Mapping)
        ]
        if not (specs or before or self._tags):
            return ()
        names = {category for spec in specs.values() for category in spec.wanted} | {
            str(tag.get("category")) for tag in before
        }
        return self._tagging.read(lambda name, description: name in names or self._ours(description))

    def _ours(self, description: str) -> bool:
        mark = Mark.owner_in(description)
        return mark is not None and mark.name_of(self._site, NAME) is not None

    def _own(self, home: Category) -> Iterable[Own]:
        return (Own(home, tag) for tag in home.tags if self._ours(tag.description))

    def _empty(self, home: Category) -> bool:
        return self._ours(home.description) and not home.tags

    def _state(
        self,
        name: str,
        policy: Policy | None,
        categories: Iterable[Category],
        own: Iterable[Own],
        policies: Iterable[Policy],
    ) -> State:
        mine = tuple(
            Own(each.category, each.tag, _users(each, name, policies))
            for each in own
            if _of(each.tag.description) == name
        )
        empty = tuple(home.id for home in categories if self._empty(home) and _of(home.description) == name)
        mark = _mark(policy) if policy else Mark(self._site, f"{NAME}/{name}")
        known = {home.name: home for home in categories}
        return State(
            mark=mark,
            policy=policy,
            own=mine,
            empty=empty,
            fits=policy is None
            or not set(policy.tags) <= set(known)
            or bool(fitting(policy.tags, known, {})),
        )


def _users(own: Own, name: str, policies: Iterable[Policy]) -> tuple[str, ...]:
    """Return who else uses the tag: other policies that ask for it, and other objects that have it."""
    asking = [
        f"the storage policy {each.name}"
        for each in policies
        if each.name != name and own.tag.name in each.tags.get(own.category.name, ())
    ]
    return (
        *asking,
        *(
            f"{sort} {identity}"
            for sort, identity in sorted(own.tag.bearers)
            if identity not in own.datastores
        ),
    )


def _of(description: str) -> str:
    """The name of the policy in a mark, or ""."""
    mark = Mark.owner_in(description)
    return mark.name if mark is not None else ""


def _mark(found: Policy) -> Mark | None:
    """The policy's own mark; None if somebody copied it from another policy with the description."""
    return Mark.own(found.description, f"{NAME}/{found.name}")

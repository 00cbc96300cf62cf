"""The steps of a policy and its tag. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bfinfra.backends.vcenter.policies import Policy
from bfinfra.backends.vcenter.tagging import DATASTORE, Category
from bfinfra.kinds.named import nowhere
from bfinfra.kinds.vcenter.storage_policy.spec import OwnTag, Spec
from bfinfra.kinds.vcenter.storage_policy.state import Own, State, StoragePolicyFacts, fitting
from bfinfra.kinds.vcenter.storage_policy.steps import (
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
from bfinfra.model import compare
from bfinfra.model.compare import Change, differences
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark, above
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest

RULES = ("tags", "tag", "rules")
"""The fields of changes that are in a policy's rules, which are written as a whole."""


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: the tag first, then the policy, then removal of an earlier tag."""
    if spec is None:
        return () if state is None else tuple(_gone(name, state, context.mark))
    facts: StoragePolicyFacts = context.facts
    _check(spec, facts, context.mark)
    wanted = {facts.datastores[each] for each in spec.tag.datastores} if spec.tag else set[str]()
    nowhere = not fitting(
        spec.wanted, facts.categories, {spec.tag.category: frozenset(wanted)} if spec.tag else {}
    )
    now = state.policy if state is not None else None
    text = compare.description(
        spec,
        now.description if now else None,
        context.mark.committed(spec.applied()),
        state.mark if state else None,
    )
    policy = Policy(name, text, spec.wanted)
    tagged = _drift(spec.tag, state, facts) if spec.tag else ()
    if state is None or now is None:
        found = (
            differences(None, spec.applied())
            if state is None
            else compare.changes(spec, context.mark, tagged)
        )
        return (
            *_tag(spec.tag, state, context, found),
            Create(name=name, policy=policy, nowhere=nowhere, changes=found),
        )
    drift = () if compare.adopting(state.mark) else differences(_view(now), _view(policy))
    changed = compare.changes(spec, state.mark, drift)
    found = (*tagged, *(each for each in changed if each.field not in {t.field for t in tagged}))
    update = (
        (Update(name=name, policy=replace(policy, id=now.id), nowhere=nowhere, changes=found),)
        if changed
        else ()
    )
    old = [
        each
        for each in state.own
        if spec.tag is None or (each.category.name, each.tag.name) != (spec.tag.category, spec.tag.name)
    ]
    return (*_tag(spec.tag, state, context, found), *update, *_removed(old, context.mark))


def _gone(name: str, state: State, mark: Mark) -> Iterator[Step]:
    if state.policy is not None:
        yield Delete(
            name=name,
            id=state.policy.id,
            kept=tuple(dict.fromkeys(user for each in state.own for user in each.users)),
        )
    yield from _removed(state.own, mark)
    if state.empty:
        yield RemoveCategories(name=name, ids=state.empty)


def _removed(own: Sequence[Own], mark: Mark) -> Iterator[Step]:
    """Removal of the tag and category, if nothing else uses them."""
    for each in own:
        if not each.users:
            home = each.category.id if Mark.site_in(each.category.description) == mark.site else ""
            change = Change("tag", f"{each.category.name}/{each.tag.name}", None)
            yield RemoveTag(
                tag=each.tag.name, category=each.category.name, id=each.tag.id, home=home, changes=(change,)
            )


def _tag(
    wanted: OwnTag | None, state: State | None, context: PlanContext, changes: Sequence[Change]
) -> Iterator[Step]:
    """The steps that create the tag and put it on its datastores."""
    if wanted is None:
        return
    facts: StoragePolicyFacts = context.facts
    home, mark = facts.categories.get(wanted.category), context.mark.pending
    shown: dict[str, Any] = {"tag": wanted.name, "changes": tuple(changes)}
    on = sorted(facts.datastores[each] for each in wanted.datastores)
    committed = mark.committed({"datastores": on})
    own = _own(wanted, state)
    if home is None:
        yield MakeCategory(category=wanted.category, mark=mark, changes=tuple(changes))
    if own is None:
        yield MakeTag(category=wanted.category, home=home.id if home else "", mark=mark, **shown)
    if own is not None and (left := sorted((own.datastores - set(on)) & own.tag.datastores)):
        yield Detach(id=own.tag.id, datastores=tuple(left), **shown)
    if own is None or not own.tag.datastores.issuperset(on) or own.datastores != set(on):
        yield Attach(id=own.tag.id if own else "", datastores=tuple(on), mark=committed, **shown)


def _own(wanted: OwnTag, state: State | None) -> Own | None:
    return next(
        (
            each
            for each in (state.own if state else ())
            if (each.category.name, each.tag.name) == (wanted.category, wanted.name)
        ),
        None,
    )


def _drift(wanted: OwnTag, state: State | None, facts: StoragePolicyFacts) -> tuple[Change, ...]:
    own = _own(wanted, state)
    if own is None:
        return (Change("tag.name", None, wanted.name),)
    names = {identity: name for name, identity in facts.datastores.items()}
    ours = {facts.datastores[each] for each in wanted.datastores}
    now = own.tag.datastores & (ours | own.datastores)
    return (
        ()
        if now == ours == own.datastores
        else (
            Change(
                "tag.datastores", sorted(names.get(each, each) for each in now), sorted(wanted.datastores)
            ),
        )
    )


def _view(policy: Policy) -> dict[str, Any]:
    """The policy as a site writes it."""
    rules: dict[str, Any] = {
        "description": above(policy.description),
        "tags": {category: list(tags) for category, tags in policy.tags.items()},
    }
    return rules | ({"rules": "other requirements than tags"} if policy.others else {})


def _check(spec: Spec, facts: StoragePolicyFacts, mark: Mark) -> None:
    """Raises Refusal for a category, tag or datastore that doesn't exist, and for a tag that another owner
    created.
    """
    for category, tags in spec.tags.items():
        if category not in facts.categories:
            raise Refusal(
                f"there is no category of tags {category}",
                field=f"tags.{category}",
                why="a policy asks for tags that datastores have",
                next="create it first, or write tag: and bfinfra creates one",
            )
        known = [each.name for each in facts.categories[category].tags]
        for tag in tags:
            if tag not in known:
                raise Refusal(
                    f"there is no tag {tag} in {category}", field=f"tags.{category}", next=nearest(tag, known)
                )
    if spec.tag is not None:
        for index, each in enumerate(spec.tag.datastores):
            if each not in facts.datastores:
                raise nowhere("datastore", each, f"tag.datastores.{index}", facts.datastores)
        if (home := facts.categories.get(spec.tag.category)) is not None:
            _check_category(spec.tag, home, facts, mark)


def _check_category(wanted: OwnTag, home: Category, facts: StoragePolicyFacts, mark: Mark) -> None:
    found = home.tag(wanted.name)
    whose = Mark.owner_in(found.description) if found else None
    if found is not None and (whose is None or whose.owner != mark.owner):
        raise Refusal(
            f"the tag {wanted.name} is there already, and bfinfra did not make it for this policy",
            field="tag.name",
            why="bfinfra never changes tags of others",
            next="choose another name, or write it under tags",
        )
    if home.types and DATASTORE not in home.types:
        raise Refusal(
            f"the category {home.name} is not for datastores",
            field="tag.category",
            why=f"it is for {', '.join(home.types)}",
            next="choose another one",
        )
    others = {each for tag in home.tags if tag.name != wanted.name for each in tag.datastores} & {
        facts.datastores[each] for each in wanted.datastores
    }
    if home.single and others:
        raise Refusal(
            f"a datastore has another tag of {home.name}",
            field="tag.datastores",
            why="the category allows one tag per object",
            next="choose another category",
        )

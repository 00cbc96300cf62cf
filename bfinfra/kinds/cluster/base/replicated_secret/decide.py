"""The steps of Secrets in several namespaces. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from bfinfra.kinds.cluster.base.replicated_secret.spec import Spec
from bfinfra.kinds.cluster.base.replicated_secret.state import Copy, State
from bfinfra.kinds.cluster_locator import real_name
from bfinfra.model import compare
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.context import PlanContext
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, may
from bfinfra.model.step import Step


@dataclass(frozen=True, kw_only=True)
class Write(Step):
    """write {what} to namespace {namespace} in {cluster}"""

    rights = (may("create patch", "secrets", "namespaces"),)

    what: str
    cluster: str
    namespace: str
    home: Endpoint | Unknown
    names: tuple[str, ...]
    existing: tuple[str, ...]
    source: Any
    """A reference to the content, never the content."""
    mark: Mark
    uids: Mapping[str, str] = field(default_factory=dict)
    """The Secrets that get their mark and nothing else, by their uids."""

    @property
    def exclusive(self) -> bool:
        """True for a creation, False for a replacement."""
        return not self.existing


@dataclass(frozen=True, kw_only=True)
class Remove(Step):
    """remove {what} from namespace {namespace} in {cluster}"""

    rights = (may("delete", "secrets", "namespaces"),)
    uses = (Use.DESTROY,)

    what: str
    cluster: str
    namespace: str
    home: Endpoint
    owner: str
    names: tuple[str, ...]

    @property
    def exclusive(self) -> bool:
        """True: the call removes only the version that was read."""
        return True


def steps(  # noqa: PLR0913 - everything that a namespace's copy is made of
    name: str,
    spec: Spec | None,
    state: State | None,
    context: PlanContext,
    *,
    what: str,
    source: object,
    later: Unknown | None = None,
) -> Sequence[Step]:
    """The steps: write copies that are missing or wrong, then remove copies that are no longer wanted.
    `source`: where `content` finds the content; `later`: the resource after which it is known.
    """
    if spec is None:
        return () if state is None else tuple(_removals(name, state, {}, what))
    if state is not None and compare.adopting(state.mark):
        return tuple(_adopted(name, spec, state, context, what))
    spaces = [
        real_name(space, spec.cluster, context.needs.get(f"namespaces.{i}"))
        for i, space in enumerate(spec.namespaces)
    ]
    here = state if state is not None and state.cluster == spec.cluster else None
    names, copies = spec.names(name), here.copies if here else {}
    file_changes = compare.changes(spec, state.mark if state else None)
    found: list[Step] = []
    for space in spaces:
        copy = copies.get(space)
        wrong = copy is None or not copy.right
        if copy is None or wrong or copy.mark is None or copy.mark.applied != spec.applied():
            own = (
                (Change(f"content in {space}", _found(copy, names), later or f"as in {what}"),)
                if wrong
                else ()
            )
            found.append(
                Write(
                    what=what,
                    cluster=spec.cluster,
                    namespace=space,
                    home=here.home if here else context.needs["cluster"].get("endpoint"),
                    names=names,
                    existing=tuple(sorted(copy.names & set(names))) if copy else (),
                    source=source,
                    mark=context.mark.committed(spec.applied()),
                    changes=(*own, *(file_changes if not found else ())),
                )
            )
    if state is not None:
        found += _removals(name, state, dict.fromkeys(spaces, names) if here else {}, what)
    return found


def _adopted(name: str, spec: Spec, state: State, context: PlanContext, what: str) -> Iterator[Write]:
    """The steps that mark the Secrets that are there, and nothing else. Raises Refusal for one of another."""
    mark = context.mark.committed(spec.applied())
    for space, copy in state.copies.items():
        for each in spec.names(name):
            context.mark.refuse_others(
                copy.marks.get(each), f"namespace {space} has the Secret {each} already"
            )
        uids = {each: copy.uids[each] for each in spec.names(name) if copy.marks.get(each, mark) != mark}
        if uids:
            yield Write(
                what=what,
                cluster=state.cluster,
                namespace=space,
                home=state.home,
                names=tuple(uids),
                existing=tuple(uids),
                source={},
                mark=mark,
                uids=uids,
                changes=compare.changes(spec, state.mark),
            )


def _found(copy: Copy | None, names: Sequence[str]) -> str | None:
    """Return what the namespace has instead, in words; None if it has nothing of it."""
    if copy is None:
        return None
    gone = [name for name in names if name not in copy.names]
    return f"without {', '.join(gone)}" if gone else "other content"


def _removals(name: str, state: State, wanted: Mapping[str, Sequence[str]], what: str) -> list[Step]:
    found: list[Step] = []
    for space, copy in state.copies.items():
        if stale := tuple(sorted(copy.names - set(wanted.get(space, ())))):
            change = (Change(f"content in {space}", f"as in {what}", None),)
            found.append(
                Remove(
                    what=what,
                    cluster=state.cluster,
                    namespace=space,
                    home=state.home,
                    owner=name,
                    names=stale,
                    changes=change,
                )
            )
    return found

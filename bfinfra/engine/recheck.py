"""The end of an apply: reads once more all that it changed, as others may have changed it meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.reconciler import Reconciler
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key
from bfinfra.model.step import Step

AT_ONCE = 4  # kinds that are read in parallel
NEXT = "see who else changes it, then apply again"


def moved(  # noqa: PLR0913 - a run's whole context
    changed: Collection[Key],
    wanted: Specs,
    observed: ObservedState,
    kinds: Kinds,
    reconciler: Reconciler,
    retry: RetryPolicy,
) -> dict[Key, Problem]:
    """The resources that are no longer as this run left them, or can't be read, with the problem. One bulk
    read for each kind.
    """
    by_kind: dict[str, list[Key]] = {}
    for key in changed:
        by_kind.setdefault(key.kind, []).append(key)

    def look(kind: str) -> dict[Key, Problem]:
        try:
            retry.read(lambda: reconciler.look(kind, tuple(key.name for key in by_kind[kind])))
        except BfinfraError as error:
            why = str(error.problems[0])
            return {
                key: Problem(
                    f"{key} can't be read once more", why=why, next="check it later with: bfinfra drift SITE"
                )
                for key in by_kind[kind]
            }
        return {key: problem for key in by_kind[kind] if (problem := _judged(key))}

    def _judged(key: Key) -> Problem | None:
        try:
            left = reconciler.left(key)
        except BfinfraError as error:
            return error.problems[0]
        if not left:
            return None
        state = observed.states.get(key)
        return Problem(
            f"{key} was changed while this ran",
            why=_how(wanted.get(key), state, left) + _who(kinds[key.kind], key, state, left),
            next=NEXT,
        )

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="recheck") as pool:
        return {key: problem for found in pool.map(look, by_kind) for key, problem in found.items()}


def _how(spec: object, state: object, left: Collection[Step]) -> str:
    if spec is None:
        return "it was deleted, and exists again"
    if state is None:
        return "it was created, and is gone"
    changes = dict.fromkeys(
        f"{change.field}: {_shown(change.wanted)} → {_shown(change.now)}"
        for step in left
        for change in step.changes
    )
    return "; ".join(changes) or "; ".join(f"it needs: {step.title()}" for step in left)


def _shown(value: object) -> str:
    return "(none)" if value is None else str(value)


def _who(kind: Any, key: Key, state: object, left: Collection[Step]) -> str:
    """Return who changed it, where a server knows."""
    fields = tuple(change.field for step in left for change in step.changes) if state is not None else ("",)
    try:
        traces = kind.audit({key.name: (state, fields)}).get(key.name, {})
    except BfinfraError:
        return ""
    names = dict.fromkeys(writer.by for writer in traces.values() if writer.by)
    return f"; by {', '.join(names)}" if names else ""

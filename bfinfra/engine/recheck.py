"""The last act of an apply: one more look at all that it changed, as others may have changed it meanwhile."""

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

AT_ONCE = 4  # kinds that are looked at side by side
NEXT = "see who else changes it, then apply again"


def moved(  # noqa: PLR0913 - a run's whole context
    changed: Collection[Key],
    wanted: Specs,
    world: ObservedState,
    kinds: Kinds,
    turn: Reconciler,
    patience: RetryPolicy,
) -> dict[Key, Problem]:
    """What is no longer as this run left it, and why; what can't be looked at is told as well. One bulk read
    a kind.
    """
    by_kind: dict[str, list[Key]] = {}
    for key in changed:
        by_kind.setdefault(key.kind, []).append(key)

    def look(kind: str) -> dict[Key, Problem]:
        try:
            patience.read(lambda: turn.look(kind, tuple(key.name for key in by_kind[kind])))
        except BfinfraError as error:
            why = str(error.problems[0])
            return {
                key: Problem(
                    f"{key} can't be looked at once more",
                    why=why,
                    next="bfinfra drift says later whether it is as it should be",
                )
                for key in by_kind[kind]
            }
        return {key: problem for key in by_kind[kind] if (problem := _judged(key))}

    def _judged(key: Key) -> Problem | None:
        try:
            left = turn.left(key)
        except BfinfraError as error:
            return error.problems[0]
        if not left:
            return None
        state = world.states.get(key)
        return Problem(
            f"{key} moved while this ran",
            why=_how(wanted.get(key), state, left) + _who(kinds[key.kind], key, state, left),
            next=NEXT,
        )

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="recheck") as pool:
        return {key: problem for found in pool.map(look, by_kind) for key, problem in found.items()}


def _how(spec: object, state: object, left: Collection[Step]) -> str:
    if spec is None:
        return "it was removed, and stands there again"
    if state is None:
        return "it was made, and is gone"
    changes = dict.fromkeys(
        f"{change.field}: {_shown(change.wanted)} → {_shown(change.now)}"
        for step in left
        for change in step.changes
    )
    return "; ".join(changes) or "; ".join(f"it would take: {step.title()}" for step in left)


def _shown(value: object) -> str:
    return "(none)" if value is None else str(value)


def _who(kind: Any, key: Key, state: object, left: Collection[Step]) -> str:
    """By whom, where a server knows."""
    fields = tuple(change.field for step in left for change in step.changes) if state is not None else ("",)
    try:
        traces = kind.audit({key.name: (state, fields)}).get(key.name, {})
    except BfinfraError:
        return ""
    names = dict.fromkeys(trace.by for trace in traces.values() if trace.by)
    return f"; by {', '.join(names)}" if names else ""

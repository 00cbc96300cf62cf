"""The survey: what the world says, one bulk read a kind, in the order of the references."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from typing import Any

from bfinfra.engine import graph
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.engine.retry import OUTAGE, RetryPolicy
from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import RemoteError, Unreachable
from bfinfra.model.kind import Kind, Observation
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, kinds_named
from bfinfra.model.surveying import SurveyProgress

# seconds that a survey waits for a server that it never met; one that has answered is waited for like any
# other outage
FIRST = 3.0
Kinds = Mapping[str, Kind[Any, Any]]


@dataclass
class ObservedState:
    """What was seen. `unreadable`: key, or a kind's name for all of it, → why. Grows while an apply goes on.

    `facts`: a kind's name → of its survey; key → of the last look at that resource alone.
    """

    states: dict[Key, Any] = field(default_factory=dict)
    facts: dict[Key | str, Any] = field(default_factory=dict)
    unreadable: dict[Key | str, str] = field(default_factory=dict)

    def why_unreadable(self, key: Key) -> str:
        """Why nothing can be said of a resource, or ""."""
        return self.unreadable.get(key) or self.unreadable.get(key.kind, "")

    def take(self, kind: str, seen: Observation, names: Collection[str] = ()) -> None:
        """Note what was seen of a kind; with `names` of these resources alone, of which nothing older counts
        any more.
        """
        for key in (Key(kind, name) for name in names):
            self.states.pop(key, None)
            self.unreadable.pop(key, None)
        self.states |= {Key(kind, name): state for name, state in seen.states.items() if state is not None}
        self.facts |= dict.fromkeys((Key(kind, name) for name in names) if names else (kind,), seen.facts)
        self.unreadable |= {
            Key(kind, name) if name else kind: str(why) for name, why in seen.unreadable.items()
        }


def survey(
    kinds: Kinds,
    wanted: Specs,
    patience: RetryPolicy,
    world: ObservedState | None = None,
    progress: SurveyProgress | None = None,
) -> ObservedState:
    """Ask each of the kinds, also those that the site doesn't use: what was deleted from the file must be
    found. `world`: what others saw before.
    """
    world = ObservedState() if world is None else world
    progress = progress or SurveyProgress()
    progress.asks(len(kinds))
    patience = replace(patience, first=min(FIRST, patience.lasts))
    pool = ThreadPoolExecutor(max_workers=16, thread_name_prefix="survey")

    def look(name: str, patience: RetryPolicy) -> Observation:
        with progress.asking(name):
            return ask(kinds[name], name, wanted, world, patience)

    try:
        for level in graph.levels(kinds):
            asked = [(name, pool.submit(look, name, patience)) for name in level]
            for name, answer in asked:
                try:
                    world.take(name, answer.result())
                except RemoteError as error:
                    world.unreadable[name] = str(error)
                    if isinstance(
                        error, Unreachable
                    ):  # nothing can be applied now: the later kinds don't wait for it as long again
                        patience = replace(patience, attempts=1, lasts=0, first=0)
    finally:
        pool.shutdown(
            wait=False, cancel_futures=True
        )  # all have answered, but where somebody interrupts: then no server is waited for
    return world


def ask(
    kind: Kind[Any, Any], name: str, wanted: Specs, world: ObservedState, patience: RetryPolicy
) -> Observation:
    """One kind's bulk read, tried again after what passes."""
    specs = specs_of(name, wanted)
    needs = needs_of(name, kind, wanted, world)
    partly: list[Observation] = []

    def look() -> Observation:
        partly.clear()
        with provider_errors(name):
            seen = kind.observe(specs, needs)
        if passing := next(
            (
                why
                for why in seen.unreadable.values()
                if isinstance(why, OUTAGE) and getattr(why, "met", True)
            ),
            None,
        ):
            partly.append(seen)
            raise passing
        return seen

    try:
        return patience.read(look)
    except OUTAGE:
        if partly:
            return partly[0]
        raise


def specs_of(name: str, wanted: Specs) -> dict[str, Any]:
    """What is wanted of a kind, by name."""
    return {key.name: spec for key, spec in wanted.items() if key.kind == name}


def needs_of(name: str, kind: Kind[Any, Any], wanted: Specs, world: ObservedState) -> dict[Key, ResolvedRef]:
    """All that is known of the other kinds that this kind may refer to; nothing where it doesn't look at
    that.
    """
    named = frozenset() if kind.alone else (kinds_named(kind.Spec) | kinds_named(kind.State)) - {name}
    if not named:
        return {}
    keys = {key: None for key in (*wanted, *world.states) if key.kind in named}
    return {
        key: ResolvedRef(key, wanted.get(key), world.states.get(key))
        for key in keys
        if not world.why_unreadable(key)
    }

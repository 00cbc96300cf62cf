"""The survey: reads the observed state, one bulk read for each kind, in the order of the references."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from typing import Any

from bfinfra.engine import graph
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.engine.retry import OUTAGE, RetryPolicy
from bfinfra.model.context import ResolvedRef
from bfinfra.model.errors import Refusal, RemoteError, Unreachable
from bfinfra.model.kind import Kind, Observation
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, kinds_named
from bfinfra.model.surveying import SurveyProgress

# seconds that a survey retries a server that has not answered in this run; after an answer, an outage is
# retried like any other
FIRST = 3.0
AnyKind = Kind[Any, Any]
Kinds = Mapping[str, AnyKind]


@dataclass
class ObservedState:
    """The states that were read. `unreadable`: a key, or the name of a kind for all of it, → the reason.
    Grows during an apply.

    `facts`: name of a kind → facts of its survey; key → facts of the last read of that resource alone.
    """

    states: dict[Key, Any] = field(default_factory=dict)
    facts: dict[Key | str, Any] = field(default_factory=dict)
    unreadable: dict[Key | str, str] = field(default_factory=dict)
    refused: dict[Key, Refusal] = field(default_factory=dict)

    def why_unreadable(self, key: Key) -> str:
        """Return why the resource could not be read, or ""."""
        return self.unreadable.get(key) or self.unreadable.get(key.kind, "")

    def take(self, kind: str, observation: Observation, names: Collection[str] = ()) -> None:
        """Add what was read of a kind. With `names`, it replaces what was known of these resources."""
        for key in (Key(kind, name) for name in names):
            self.states.pop(key, None)
            self.unreadable.pop(key, None)
            self.refused.pop(key, None)
        self.states |= {
            Key(kind, name): state for name, state in observation.states.items() if state is not None
        }
        self.facts |= dict.fromkeys(
            (Key(kind, name) for name in names) if names else (kind,), observation.facts
        )
        self.refused |= {Key(kind, name): why for name, why in observation.refused.items()}
        self.unreadable |= {
            Key(kind, name) if name else kind: str(why) for name, why in observation.unreadable.items()
        }


def survey(
    kinds: Kinds,
    wanted: Specs,
    retry: RetryPolicy,
    progress: SurveyProgress | None = None,
    further: Callable[[ObservedState], Kinds] | None = None,
) -> ObservedState:
    """Read each of the kinds, also those that the site doesn't use: a resource that was removed from the file
    must be found. `further`: the kinds that are read after these, by what was found.
    """
    observed = ObservedState()
    progress = progress or SurveyProgress()
    retry = replace(retry, first=min(FIRST, retry.lasts))
    pool = ThreadPoolExecutor(max_workers=16, thread_name_prefix="survey")

    def look(kind: AnyKind, name: str, retry: RetryPolicy) -> Observation:
        with progress.asking(name):
            return ask(kind, name, wanted, observed, retry)

    def surveyed(kinds: Kinds, retry: RetryPolicy) -> RetryPolicy:
        progress.asks(len(kinds))
        for level in graph.levels(kinds):
            asked = [(name, pool.submit(look, kinds[name], name, retry)) for name in level]
            for name, answer in asked:
                try:
                    observed.take(name, answer.result())
                except RemoteError as error:
                    observed.unreadable[name] = str(error)
                    # nothing can be applied now, so the later kinds don't wait for this server again
                    if isinstance(error, Unreachable):
                        retry = replace(retry, attempts=1, lasts=0, first=None)
        return retry

    try:
        retry = surveyed(kinds, retry)
        if further is not None:
            surveyed(further(observed), retry)
    finally:
        # all have answered, except after an interrupt: then no server is waited for
        pool.shutdown(wait=False, cancel_futures=True)
    return observed


def ask(kind: AnyKind, name: str, wanted: Specs, observed: ObservedState, retry: RetryPolicy) -> Observation:
    """One kind's bulk read, retried. If the retries end in an outage, what could be read so far is
    returned.
    """
    specs = specs_of(name, wanted)
    needs = needs_of(name, kind, wanted, observed)
    incomplete: list[Observation] = []

    def look() -> Observation:
        incomplete.clear()
        with provider_errors(name):
            observation = kind.observe(specs, needs)
        if outage := next(
            (
                why
                for why in observation.unreadable.values()
                if isinstance(why, OUTAGE) and getattr(why, "met", True)
            ),
            None,
        ):
            incomplete.append(observation)
            raise outage
        return observation

    try:
        return retry.read(look)
    except OUTAGE:
        if incomplete:
            return incomplete[0]
        raise


def specs_of(name: str, wanted: Specs) -> dict[str, Any]:
    """The desired specs of a kind, by name."""
    return {key.name: spec for key, spec in wanted.items() if key.kind == name}


def needs_of(name: str, kind: AnyKind, wanted: Specs, observed: ObservedState) -> dict[Key, ResolvedRef]:
    """The specs and states of the other kinds that this kind may refer to; {} for a kind that does not read
    them.
    """
    named = frozenset() if kind.alone else (kinds_named(kind.Spec) | kinds_named(kind.State)) - {name}
    if not named:
        return {}
    keys = {key: None for key in (*wanted, *observed.states) if key.kind in named}
    return {
        key: ResolvedRef(key, wanted.get(key), observed.states.get(key))
        for key in keys
        if not observed.why_unreadable(key)
    }

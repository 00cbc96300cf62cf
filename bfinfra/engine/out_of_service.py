"""The end of a run that did not finish: what it turned off or left in maintenance mode, by states that are
read for this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.engine.plan import DesiredState
from bfinfra.engine.provider_errors import provider_errors
from bfinfra.engine.reconciler import Reconciler
from bfinfra.model.errors import BfinfraError
from bfinfra.model.outcome import OutOfService
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.resource import State
from bfinfra.model.step import Disruption


class Service:
    """What of a site serves, before its run and after it."""

    def __init__(self, desired: DesiredState, observed: ObservedState, kinds: Kinds) -> None:
        self._desired, self._observed, self._kinds = desired, observed, kinds
        self._before = {key: self._how(key, state) for key, state in self._own().items()}

    def _how(self, key: Key, state: State) -> str:
        return state.out_of_service(self._desired.wanted.get(key))

    def _own(self) -> dict[Key, State]:
        """The states of the site's resources whose kind can be out of service."""
        able = {name for name, kind in self._kinds.items() if can_be_out(kind.State)}
        return {
            key: state
            for key, state in self._observed.states.items()
            if key.kind in able
            and (key in self._desired.wanted or getattr(state.mark, "site", None) == self._desired.site)
        }

    def lost(self, plan: Plan, unfinished: Collection[Key], run: Reconciler) -> tuple[OutOfService, ...]:
        """What does not serve now and did before, or is among the `unfinished`."""
        unread = self._read_again(plan, run)
        return tuple(self._lost({item.key: item.disruption for item in plan.items}, unfinished, run, unread))

    def _lost(
        self,
        disruptions: Mapping[Key, Disruption],
        unfinished: Collection[Key],
        run: Reconciler,
        unread: Mapping[Key, str],
    ) -> Iterator[OutOfService]:
        own = self._own()
        for key in sorted({*own, *unread}, key=str):
            how = self._how(key, own[key]) if key in own else ""
            if how and (not self._before.get(key) or key in unfinished):
                seen = f", as it was last read ({unread[key]})" if key in unread else ""
                yield OutOfService(key, how + seen, _left(run, key))
            elif (
                key in unread
                and key in run.tried
                and disruptions.get(key, Disruption.NONE) is not Disruption.NONE
            ):
                yield OutOfService(
                    key, f"may be off or in maintenance mode: it can't be read now ({unread[key]})"
                )

    def _read_again(self, plan: Plan, run: Reconciler) -> dict[Key, str]:
        """Read what this run may have stopped. A step that disrupts may stop resources of other kinds.

        Returns what can't be read, and why: then the last states stay.
        """
        wide = any(item.key in run.tried and item.disruption is not Disruption.NONE for item in plan.items)
        asked = {*self._own(), *run.tried} if wide else run.tried
        by_kind: dict[str, set[str]] = {}
        for key in asked:
            if can_be_out(self._kinds[key.kind].State):
                by_kind.setdefault(key.kind, set()).add(key.name)
        unread: dict[Key, str] = {}
        for kind, names in by_kind.items():
            last = {key: state for key, state in self._observed.states.items() if key.kind == kind}
            try:
                with provider_errors(kind):
                    run.look(kind, tuple(sorted(names)))
            except (BfinfraError, OSError) as error:
                why = str(error.problems[0]) if isinstance(error, BfinfraError) else str(error)
                unread |= dict.fromkeys((Key(kind, name) for name in names), why)
                self._observed.states |= {
                    key: last[key] for key in last.keys() - self._observed.states.keys()
                }
        return unread


def can_be_out(state: type[State]) -> bool:
    """Return whether a resource with such a State can be out of service."""
    return state.out_of_service is not State.out_of_service


def _left(run: Reconciler, key: Key) -> tuple[str, ...]:
    try:
        return tuple(step.title() for step in run.left(key))
    except BfinfraError:
        return ()

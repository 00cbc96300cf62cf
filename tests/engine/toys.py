"""A toy world for the engine: boxes, and lids that lie on boxes. It counts writes and can be set to fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from bfinfra.engine.apply import Apply, Options
from bfinfra.engine.observe import survey
from bfinfra.engine.plan import DesiredState, make
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model import compare, kind, resource
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal
from bfinfra.model.events import Ended, Event
from bfinfra.model.kind import Observation
from bfinfra.model.mark import Mark
from bfinfra.model.plan import Plan
from bfinfra.model.readiness import READY, Readiness, failed, waiting
from bfinfra.model.refs import Key, Ref
from bfinfra.model.site import Site
from bfinfra.model.step import Disruption, Step


class BoxSpec(resource.Spec):
    size: int = 1
    material: str = "wood"


class LidSpec(resource.Spec):
    box: Annotated[str, Ref("box")]
    colour: str = "red"


@dataclass(frozen=True, kw_only=True)
class ToyState(resource.State):
    fields: Mapping[str, Any]
    phase: str = "fine"
    serial: str = ""


@dataclass(frozen=True, kw_only=True)
class LidState(ToyState):
    box: Annotated[str, Ref("box")]


@dataclass(frozen=True, kw_only=True)
class Make(Step):
    """make {name}"""

    name: str
    fields: Mapping[str, Any]
    mark: Mark
    on: Any = None


@dataclass(frozen=True, kw_only=True)
class Change(Step):
    """change {name}"""

    name: str
    fields: Mapping[str, Any]
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Burn(Step):
    """burn {name}"""

    destructive = True
    name: str


@dataclass(frozen=True, kw_only=True)
class BurnToReplace(Burn):
    """burn {name} to make it of something else"""

    disruption = Disruption.REPLACE
    why = "wood does not turn into steel"
    waits_ready = True


@dataclass
class ToyWorld:
    """`things`: (kind, name) → state. `reads` and `writes` as they came; `fail(step)` may raise before,
    `after(step)` after.
    """

    things: dict[tuple[str, str], Any] = field(default_factory=dict)
    reads: list[tuple[str, bool]] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    fail: Callable[[Step], None] = lambda _: None
    after: Callable[[Step], None] = lambda _: None
    readiness: Callable[[str], Readiness] = lambda _: READY
    unreadable: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def kinds(self) -> dict[str, Any]:
        return {"box": Box(self), "lid": Lid(self)}


class AtOnce:
    """Counts how many pass at once. Each stays until as many as expected were there, and a moment for one more."""

    def __init__(self, expected: int) -> None:
        self.expected, self.now, self.most, self.change = expected, 0, 0, threading.Condition()

    def passing(self) -> None:
        with self.change:
            self.now += 1
            self.most = max(self.most, self.now)
            self.change.notify_all()
            self.change.wait_for(lambda: self.most >= self.expected, timeout=5)
            self.change.wait_for(lambda: self.most > self.expected, timeout=0.05)
            self.now -= 1


class Toy(kind.Kind[kind.S, kind.T]):
    word = ""
    deadline = 5

    def __init__(self, world: ToyWorld) -> None:
        self.world = world

    def observe(
        self, wanted, needs: Mapping[Key, ResolvedRef], *, include_unlisted: bool = True
    ) -> Observation:
        with self.world.lock:
            self.world.reads.append((self.word, include_unlisted))
            found = {name: state for (word, name), state in self.world.things.items() if word == self.word}
        return Observation(
            {n: s for n, s in found.items() if n in wanted or (include_unlisted and s.mark)},
            unreadable=self.world.unreadable if self.word == "box" else {},
        )

    def ready(self, spec, state) -> Readiness:
        if state.phase == "broken":
            return failed("it is broken")
        return waiting("the glue dries") if state.phase == "drying" else self.world.readiness(self.word)

    def run(self, step: Step, report) -> None:
        with self.world.lock:
            self.world.fail(step)
            key = (self.word, step.name)
            if isinstance(step, Burn):
                del self.world.things[key]
            elif isinstance(step, Make):
                self.world.things[key] = self.made(step)
            else:
                self.world.things[key] = replace(self.world.things[key], fields=step.fields, mark=step.mark)
            self.world.writes.append(step.title())
            self.world.after(step)

    def made(self, step: Make) -> ToyState:
        return ToyState(mark=step.mark, fields=step.fields, serial=f"serial of {step.name}")


class Box(Toy[BoxSpec, ToyState]):
    """A box."""

    word = "box"

    @staticmethod
    def steps(name, spec, state, context: PlanContext):
        if spec is None:
            return () if state is None else (Burn(name=name),)
        if spec.size > 9:
            raise Refusal("no box is that large", field="size", next="make it 9 or less")
        build = Make(
            name=name,
            fields=spec.applied(),
            mark=context.mark.committed(spec.applied()),
            changes=compare.differences(None, spec.applied()),
        )
        if state is None:
            return (build,)
        if state.fields.get("material", "wood") != spec.material:
            return BurnToReplace(
                name=name, changes=(compare.Change("material", state.fields.get("material"), spec.material),)
            ), build
        found = compare.changes(spec, state.mark, compare.differences(state.fields, spec.applied()))
        return (
            (
                Change(
                    name=name,
                    fields=spec.applied(),
                    mark=context.mark.committed(spec.applied()),
                    changes=found,
                ),
            )
            if found
            else ()
        )


class Lid(Toy[LidSpec, LidState]):
    """A lid."""

    word = "lid"

    def made(self, step: Make) -> LidState:
        return LidState(mark=step.mark, fields=step.fields, box=step.fields["box"])

    @staticmethod
    def steps(name, spec, state, context: PlanContext):
        if spec is None:
            return () if state is None else (Burn(name=name),)
        if state is None:
            return (
                Make(
                    name=name,
                    fields=spec.applied(),
                    mark=context.mark.committed(spec.applied()),
                    on=context.needs["box"].get("serial"),
                    changes=compare.differences(None, spec.applied()),
                ),
            )
        found = compare.changes(spec, state.mark, compare.differences(state.fields, spec.applied()))
        return (
            (
                Change(
                    name=name,
                    fields=spec.applied(),
                    mark=context.mark.committed(spec.applied()),
                    changes=found,
                ),
            )
            if found
            else ()
        )


def site(**resources: Any) -> Site:
    """`site(box__a=BoxSpec())`: resources by kind__name."""
    return Site("toys", None, {Key(*name.split("__")): spec for name, spec in resources.items()})


IMPATIENT = RetryPolicy(attempts=4, lasts=0, sleep=lambda _: None)


def planned(
    world: ToyWorld,
    wanted: Site,
    *,
    destroy: bool = False,
    adopt: frozenset[Key] = frozenset(),
    targets: tuple[Key, ...] = (),
) -> Plan:
    desired = DesiredState.of(wanted, destroy=destroy, adopt=adopt)
    return make(wanted, desired, survey(world.kinds(), desired.wanted, IMPATIENT), world.kinds(), targets)


def applied(
    world: ToyWorld,
    wanted: Site,
    *,
    destroy: bool = False,
    between: Callable[[], None] = lambda: None,
    **options: Any,
) -> tuple[dict[str, str], list[Event]]:
    """Plan and run. Answers address → ending, and the events; `between` happens after the plan."""
    desired, kinds, events = DesiredState.of(wanted, destroy=destroy), world.kinds(), []
    observed = survey(kinds, desired.wanted, IMPATIENT)
    plan = make(wanted, desired, observed, kinds)
    between()
    endings = Apply(
        plan, desired, observed, kinds, Options(**{"retry": IMPATIENT, **options}), events.append
    ).run()
    return {str(k): str(e.ending) for k, e in endings.items()}, events


def problems(events: list[Event]) -> list[str]:
    return [str(e.problem) for e in events if isinstance(e, Ended) and e.problem]


def lines(plan: Plan) -> list[str]:
    return [
        f"{item.action} {item.key}: {', '.join(s.title() for s in item.steps)}".rstrip(": ")
        for item in plan.items
    ]

"""The contract of a kind: three nouns (Spec, State, Step) and four verbs (observe, steps, ready, run).

A static method decides and is pure; a method with `self` touches the world. The engine alone retries, waits
and orders.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

from bfinfra.model.conflict import Conflict
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.description import Description
from bfinfra.model.document import Document
from bfinfra.model.errors import RemoteError
from bfinfra.model.finding import Finding
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness
from bfinfra.model.reading import Reading
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec, State
from bfinfra.model.rights import PrivilegePlaces, Right
from bfinfra.model.step import Step


@dataclass(frozen=True)
class Observation:
    """What `observe` saw. `states`: by name, absent = not there. `unreadable`: name, or "" for all, → why; an
    error may pass, and then it is looked again.
    """

    states: Mapping[str, Any]
    facts: Any = None
    unreadable: Mapping[str, str | RemoteError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """How far a long step is: bytes done and, where known, bytes in all."""

    what: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class LastWriter:
    """Who last wrote something, as the server names them ("" where it doesn't), and when, seconds since the
    epoch.
    """

    by: str
    at: float | None = None


Report = Callable[[Done], None]

S = TypeVar("S", bound=Spec)

T = TypeVar("T", bound=State)


class Kind(ABC, Generic[S, T]):
    """One kind of resource. Its constructor names the backends that it takes, as `Backends` does."""

    Spec: ClassVar[type[Any]]
    State: ClassVar[type[Any]]
    """Both are taken from the base, `Kind[Spec, State]`."""
    document: ClassVar[Document]
    """The source document whose work it does."""
    deadline: ClassVar[int] = 600
    """Seconds a resource may take to become ready before the run ends as still waiting."""
    step_types: ClassVar[tuple[type[Step], ...]] = ()
    """Every step that it may decide on."""
    survey_privileges: ClassVar[tuple[Right, ...]] = ()
    """What each survey takes, whether the site has such resources or not: it asks every kind."""
    resource_privileges: ClassVar[tuple[Right, ...]] = ()
    """What observing takes besides, for each resource that is wanted."""
    alone: ClassVar[bool] = False
    """Its survey takes nothing of what other kinds saw: it waits for none of those that it refers to."""
    prefetch: ClassVar[tuple[Reading[object], ...]] = ()
    """What `observe` reads whatever other kinds see: asked for while kinds are still imported (`fetch`)."""
    reaches: ClassVar[bool] = False
    """What is in it can be seen through it alone (a cluster): while it waits for a file nothing is known of
    that.
    """
    checks: ClassVar[Mapping[str, Callable[..., Iterable[Finding]]]] = {}
    """What `bfinfra doctor` looks at where a site has such resources: by the names that it prints, functions
    that take a CheckContext (`bfinfra.kinds.checks`) and only read.
    """
    undescribed: ClassVar[str] = ""
    """Why `describe` finds nothing: what an object of the kind shows doesn't tell what a site would say of
    it. "" where it does.
    """
    managed: ClassVar[bool] = True
    """False where the object is there anyway and only its settings are ours (a host), or nothing is written
    (a source).
    """

    holds_data: ClassVar[bool] = False
    """What is in it goes with it and can't be had back: whoever deletes or replaces one types its name."""

    def __init_subclass__(cls) -> None:
        """Note the two nouns."""
        super().__init_subclass__()
        given = next(
            (args for base in cls.__dict__.get("__orig_bases__", ()) if (args := typing.get_args(base))), None
        )
        if given and not isinstance(given[0], TypeVar):
            cls.Spec, cls.State = given[:2]

    @abstractmethod
    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """The only read, bulk per server.

        `wanted`: name → spec, None for a name to look at only because it may have to go. `needs`: what was
        seen of every resource of another kind that the wanted and the standing refer to. `include_unlisted`:
        also answer whatever else this site made. Raises RemoteError where nothing at all could be read.
        """

    def fetch(self, reading: Reading[object], wanted: Mapping[str, S]) -> object:
        """Ask for one of `prefetch`, for a survey of `wanted`. Raises RemoteError."""
        raise AssertionError(f"{type(self).__name__} prefetches {reading.type} and does not fetch it")

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterable[Description]:
        """Every object that a site could describe, whoever made it, in the words of a site. Reads only, in
        bulk.

        `needs`: what was seen of the kinds that it refers to. The fields are those that drift compares: a
        site that says them agrees with what stands. Raises RemoteError.
        """
        return ()

    @staticmethod
    @abstractmethod
    def steps(name: str, spec: S | None, state: T | None, context: PlanContext) -> Sequence[Step]:
        """Pure: from what is to what shall be. `None` is absence; `[]` is agreement. Raises Refusal."""

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: Any) -> Iterable[Conflict]:
        """Pure: what several resources can't be together, as far as the survey tells, before the first write.

        `wanted`: all that the site describes; `states`: all that was seen of it; `facts`: what `observe`
        brought along.
        """
        return ()

    @staticmethod
    def places(name: str, spec: S, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Pure: where the words in its rights are, for one resource. `needs`: by field, without states;
        `datacenter`: `*` where the site names none.
        """
        return {}

    def ready(self, spec: S, state: T) -> Readiness:
        """May dependants start? Reads only, and only while settling.

        Between two steps (`Step.settles`): may the next one run? `spec` is None there where the resource is
        on its way out.
        """
        return READY

    def audit(
        self, asked: Mapping[str, tuple[T | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """Who moved what, as far as the servers tell; asked about what drifted alone. Reads only.

        `asked`: name → state (None where it vanished) and dotted fields, "" for the whole; the answer is by
        name and field. Raises RemoteError.
        """
        return {}

    @abstractmethod
    def run(self, step: Step, report: Report) -> None:
        """The only write; one step; harmless to repeat. Raises RemoteError."""


class Source(Kind[S, T]):
    """A kind that is only read: it has no steps."""

    managed = False

    @staticmethod
    def steps(name: str, spec: S | None, state: T | None, context: PlanContext) -> Sequence[Step]:
        """Nothing is ever done to a source."""
        return ()

    def run(self, step: Step, report: Report) -> None:
        """Never called: a source has no steps."""
        raise AssertionError(step)

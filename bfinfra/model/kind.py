"""The contract of a kind: three nouns (Spec, State, Step) and four verbs (observe, steps, ready, run).

Static methods decide and are pure; methods with `self` contact servers. The engine alone retries, waits and
orders.
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
from bfinfra.model.errors import Refusal, RemoteError
from bfinfra.model.finding import Finding
from bfinfra.model.order import Specs
from bfinfra.model.readiness import READY, Readiness
from bfinfra.model.reading import Reading
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec, State
from bfinfra.model.rights import PrivilegePlaces, Right, Use
from bfinfra.model.step import Step


@dataclass(frozen=True)
class Observation:
    """The result of `observe`. `states`: by name; missing: does not exist. `unreadable`: name, or "" for all,
    → why. A transient error is retried.

    `refused`: name → why it can't be made now: its place is missing, or being deleted. Told in the plan only:
    an apply that has begun is told by the server.
    """

    states: Mapping[str, Any]
    facts: Any = None
    unreadable: Mapping[str, str | RemoteError] = field(default_factory=dict)
    refused: Mapping[str, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """The progress of a long step: bytes done and, if known, bytes in all."""

    what: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class LastWriter:
    """The last writer of something, as the server names them ("" if it doesn't), and when, in seconds since
    the epoch.
    """

    by: str
    at: float | None = None


Report = Callable[[Done], None]

S = TypeVar("S", bound=Spec)

T = TypeVar("T", bound=State)


class Kind(ABC, Generic[S, T]):
    """One kind of resource. Its constructor's parameters name the backends that it needs, as `Backends`
    does.
    """

    Spec: ClassVar[type[Any]]
    State: ClassVar[type[Any]]
    """Both come from the base class, `Kind[Spec, State]`."""
    document: ClassVar[Document]
    """The source document whose work it does."""
    deadline: ClassVar[int] = 600
    """Seconds a resource may take to become ready before the run ends as still waiting."""
    step_types: ClassVar[tuple[type[Step], ...]] = ()
    """Every step that it may decide on."""
    survey_privileges: ClassVar[tuple[Right, ...]] = ()
    """The rights that each survey needs, also without such resources in the site: a survey reads every
    kind.
    """
    resource_privileges: ClassVar[tuple[Right, ...]] = ()
    """The further rights that reading each desired resource needs."""
    alone: ClassVar[bool] = False
    """True if its survey needs no states of other kinds, and so waits for no kind that it refers to."""
    prefetch: ClassVar[tuple[Reading[object], ...]] = ()
    """What `observe` reads whatever other kinds' states are; requested while kinds are still imported
    (`fetch`).
    """
    followed: ClassVar[bool] = False
    """True if vCenter's property collector has all that `observe` reads, so that `bfinfra watch` gets each
    change. What other kinds read is read at intervals.
    """
    reaches: ClassVar[bool] = False
    """True if it is the only way to what is in it (a cluster): while it waits for a file, nothing in it can
    be read.
    """
    checks: ClassVar[Mapping[str, Callable[..., Iterable[Finding]]]] = {}
    """What `bfinfra doctor` checks for a site with such resources: printed name → function, which takes a
    CheckContext (`bfinfra.kinds.checks`) and only reads.
    """
    undescribed: ClassVar[str] = ""
    """Why `describe` finds nothing: an object of the kind does not show what a site would have to say. "" if
    it does.
    """
    managed: ClassVar[bool] = True
    """False if the object exists anyway and bfinfra only changes its settings (a host), or writes nothing (a
    source).
    """

    holds_data: ClassVar[bool] = False
    """True if deleting it loses the data in it: the caller must name each one to delete or replace."""

    def __init_subclass__(cls) -> None:
        """Set Spec and State from the base class."""
        super().__init_subclass__()
        given = next(
            (args for base in cls.__dict__.get("__orig_bases__", ()) if (args := typing.get_args(base))), None
        )
        for name, arg in zip(("Spec", "State"), given or (), strict=False):
            if not isinstance(arg, TypeVar):
                setattr(cls, name, arg)

    @abstractmethod
    def observe(
        self,
        wanted: Mapping[str, S | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool = True,
    ) -> Observation:
        """The states of this kind, in bulk for each server. It only reads.

        `wanted`: name → spec, None for a resource that may have to be deleted. `needs`: the specs and states
        of other kinds that these refer to. `include_unlisted`: also return the other resources that this site
        made. Raises RemoteError if nothing at all can be read.
        """

    def fetch(self, reading: Reading[object], wanted: Mapping[str, S]) -> object:
        """The answer to one of `prefetch`, for a survey of `wanted`. Raises RemoteError."""
        raise AssertionError(f"{type(self).__name__} prefetches {reading.type} and does not fetch it")

    def describe(self, needs: Mapping[Key, ResolvedRef]) -> Iterable[Description]:
        """Every object that a site could describe, also those that bfinfra did not create. It only reads, in
        bulk.

        `needs`: the states of the kinds that it refers to. A site with the returned fields shows no drift.
        Raises RemoteError.
        """
        return ()

    @staticmethod
    @abstractmethod
    def steps(name: str, spec: S | None, state: T | None, context: PlanContext) -> Sequence[Step]:
        """Pure: the steps from the observed to the desired state; () if it is up to date. `spec` None: to be
        deleted; `state` None: does not exist. Raises Refusal.
        """

    @staticmethod
    def conflicts(wanted: Specs, states: Specs, facts: Any) -> Iterable[Conflict]:
        """Pure: the conflicts between resources that the survey shows, before the first write.

        `wanted`: all specs of the site; `states`: all its states; `facts`: what `observe` returned beside the
        states.
        """
        return ()

    @staticmethod
    def places(name: str, spec: S, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Pure: the objects that the words in its rights mean, for one resource. `needs`: by field,
        without states; `datacenter`: `*` if the site names none.
        """
        return {}

    @classmethod
    def own_rights(cls, name: str, spec: S) -> Iterable[tuple[Use, Right]]:
        """Pure: the further rights of one resource, by use, that depend on what its spec contains."""
        return ()

    def ready(self, spec: S, state: T) -> Readiness:
        """Return whether what depends on the resource may start. It only reads, and is only called while the
        engine waits.

        After a step with `waits_ready`: whether the next step may run. `spec` is None while the resource is
        being deleted.
        """
        return READY

    def audit(
        self, asked: Mapping[str, tuple[T | None, tuple[str, ...]]]
    ) -> Mapping[str, Mapping[str, LastWriter]]:
        """Return who last changed these fields, as far as the servers know. It only reads.

        `asked`: name → state (None if it vanished) and dotted fields, "" for the whole. Returns name → field
        → LastWriter. Raises RemoteError.
        """
        return {}

    @abstractmethod
    def run(self, step: Step, report: Report) -> None:
        """Run one step. The only method that writes; repeating it does no harm. Raises RemoteError."""


class Source(Kind[S, T]):
    """A kind that is only read: it has no steps."""

    managed = False

    @staticmethod
    def steps(name: str, spec: S | None, state: T | None, context: PlanContext) -> Sequence[Step]:
        """Always ()."""
        return ()

    def run(self, step: Step, report: Report) -> None:
        """Never called: a source has no steps."""
        raise AssertionError(step)

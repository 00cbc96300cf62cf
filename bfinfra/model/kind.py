"""The contract of a kind: three nouns (Spec, State, Step) and four verbs (observe, steps, ready, run).

A static method decides and is pure; a method with `self` touches the world. The engine alone retries, waits
and orders.
"""

from __future__ import annotations

import enum
import functools
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bfinfra.model.conflict import Conflict, Inner, Taken
from bfinfra.model.defaults import default_of
from bfinfra.model.document import Document
from bfinfra.model.documentation import summary
from bfinfra.model.errors import Problem, RemoteError
from bfinfra.model.mark import Mark
from bfinfra.model.order import Ordered, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import EDGES, Key
from bfinfra.model.rights import PrivilegePlaces, Right, Use
from bfinfra.model.siblings import Pair, Siblings

Address = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*/[^\s/]{1,253}$")]  # kind/name
LEADS = "_leads"
BESIDE_FIELDS = frozenset({"_as_applied", EDGES, LEADS})
"""What is worked out of a Spec, which never changes, once, and kept beside its fields: as a mark keeps it,
its references, what leads outside of the site.
"""


class Part(BaseModel):
    """A piece of a Spec. Frozen; unknown keys are errors; a docstring under a field is its documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Spec(Part, Ordered):
    """What a user writes for one resource."""

    name_pattern: ClassVar[str] = r"[^\s/]{1,253}"
    """What its name must match in whole."""
    name_rule: ClassVar[str] = "no blanks and no slash, at most 253 characters"
    """The same, for people."""

    awaits: ClassVar[Mapping[str, str]] = {}
    """Files that needn't be there when a site begins: dotted field → where one gets it. What needs one waits
    until it is there.
    """
    digested: ClassVar[str] = ""
    """The field with secrets of which salted digests are noted, if there is one: it takes the site's
    pepper.
    """
    unnoted: ClassVar[frozenset[str]] = frozenset()
    """Those of them of which nothing is noted: what stands can't be compared with them while they are
    away.
    """
    protect: bool = False
    """Refuse to delete or replace this resource, whatever the command line allows."""
    after: Annotated[tuple[Address, ...], Field(exclude=True)] = ()
    """Addresses of resources, kind/name, that must be ready before this one is begun, for reasons that
    bfinfra can't know; on the way down they go after it.
    """

    def warnings(self) -> Iterable[tuple[str, Problem]]:
        """What is allowed but better known before: dotted field and what to say of it."""
        return ()

    def parts(self) -> Iterable[str]:
        """What is drawn inside of it in a picture of the site: a host's cards."""
        return ()

    def answers_at(self) -> str:
        """Where it will answer, as far as the file says: host or host:port, "" where it doesn't."""
        return ""

    def takes(self, name: str) -> Iterable[Taken]:
        """What no other resource of the site may have: addresses, names of objects. By the file alone."""
        return ()

    def inside(self) -> Iterable[Inner]:
        """Networks that are there inside of it only, where no machine may have an address."""
        return ()

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterable[Conflict]:
        """What several resources can't be together, by the file alone. `mine`: the specs of this kind;
        `site`: all of them.
        """
        return ()

    def applied(self) -> dict[str, Any]:
        """The fields as a mark keeps them: what was written, defaults left out, secrets as references. Worked
        out once: not to be changed.
        """
        return self._as_applied

    @functools.cached_property
    def _as_applied(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy that differs in some fields; what was worked out of the original is not taken along."""
        copied = super().model_copy(update=update, deep=deep)
        for kept in BESIDE_FIELDS:
            vars(copied).pop(kept, None)
        return copied


@dataclass(frozen=True, kw_only=True)
class State:
    """What the world says of one resource; fields are named as in the Spec where they compare."""

    mark: Mark | None = None
    """None: it stands there, but nobody's mark is on it."""
    contents: tuple[str, ...] = ()
    """Other people's objects inside: what a deletion would take along."""
    copy: str = ""
    """Whose copy it is, in words, where somebody copied an object of ours with its mark; such a one is
    nobody's that we know of.
    """

    def answers_at(self) -> str:
        """Where it answers: host or host:port, "" where it doesn't or where nobody says."""
        return ""


class Disruption(enum.StrEnum):
    """What a step does to what runs."""

    NONE = "none"
    REBOOT = "reboot"
    POWER_CYCLE = "power-cycle"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Change:
    """One field that will differ: dotted path, the value now, the value wanted. Secrets never stand here."""

    field: str
    now: Any
    wanted: Any


@dataclass(frozen=True, slots=True)
class Unknown:
    """What another resource will have, or a file once it is brought: `(known after tanzu_cluster/cluster-01:
    endpoint)`.
    """

    key: Key | str
    field: str

    def __str__(self) -> str:
        return f"(known after {self.key}: {self.field})"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One side effect as data: printed, compared and journalled before it runs. Carries references, never
    secrets.

    A subclass's docstring is its title; `{name}` in it stands for a field.
    """

    destructive: ClassVar[bool] = False
    """It destroys something that can't be had back."""
    disruption: ClassVar[Disruption] = Disruption.NONE
    why: ClassVar[str] = ""
    """Why it disrupts."""
    preapproved: ClassVar[bool] = False
    """The site itself asks for the disruption (`reboot: if_needed`): no further allowance is needed."""
    settles: ClassVar[bool] = False
    """The next step waits until the resource is ready again."""
    rights: ClassVar[tuple[Right, ...]]
    """What it takes to run it; each class says so itself."""
    uses: ClassVar[tuple[Use, ...]] = (Use.APPLY,)
    """Which of a site's rights these are."""

    changes: tuple[Change, ...] = ()

    @property
    def exclusive(self) -> bool:
        """It fails with Exists or Conflict where its object is not as it was last seen: nobody needs to look
        just before it.
        """
        return False

    def title(self) -> str:
        """One line for people."""
        return (summary(type(self)) or type(self).__name__).rstrip(".").format(**vars(self))


@dataclass(frozen=True)
class ResolvedRef:
    """What is known of a resource that a reference names."""

    key: Key
    spec: Any
    state: Any

    def get(self, name: str) -> Any:
        """The state's field, or Later where the resource doesn't stand yet or doesn't have it yet."""
        value = None if self.state is None else getattr(self.state, name)
        return Unknown(self.key, name) if value is None else value


@dataclass(frozen=True)
class PlanContext:
    """What a decision may look at besides its own spec and state; frozen.

    `mark`: the mark to write, unsealed. `needs`: by the dotted field that holds the reference (`cluster`,
    `tokens.0`). `siblings`: the same kind's others, wanted or standing, by name. `facts`: what `observe`
    brought along.
    """

    mark: Mark
    needs: Mapping[str, ResolvedRef] = field(default_factory=dict)
    siblings: Mapping[str, Pair] = field(default_factory=dict)
    facts: Any = None

    @property
    def name(self) -> str:
        """The name of the resource that is decided on."""
        return self.mark.name

    def sharing(self, field: str) -> dict[str, Pair]:
        """The peers whose spec or state names in this field the same resource as one's own spec."""
        siblings = self.siblings if isinstance(self.siblings, Siblings) else Siblings(self.siblings)
        return siblings.naming(field, self.needs[field].key.name)


@dataclass(frozen=True)
class Observation:
    """What `observe` saw. `states`: by name, absent = not there. `unreadable`: name, or "" for all, → why; an
    error may pass, and then it is looked again.
    """

    states: Mapping[str, Any]
    facts: Any = None
    unreadable: Mapping[str, str | RemoteError] = field(default_factory=dict)


class Ready(enum.StrEnum):
    """May dependants start?"""

    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Readiness:
    """`why` reads on after "waiting: " or "failed: "; `note` is worth reporting once ready (an address, a log
    line).
    """

    status: Ready
    why: str = ""
    note: str = ""


READY = Readiness(Ready.READY)


def waiting(why: str) -> Readiness:
    """Not yet."""
    return Readiness(Ready.WAITING, why)


def failed(why: str) -> Readiness:
    """Never, unless somebody acts."""
    return Readiness(Ready.FAILED, why)


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
    """One kind of resource. Its constructor takes the backends it needs, found by their annotations."""

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
    reaches: ClassVar[bool] = False
    """What is in it can be seen through it alone (a cluster): while it waits for a file nothing is known of
    that.
    """
    managed: ClassVar[bool] = True
    """False where the object is there anyway and only its settings are ours (a host), or nothing is written
    (a source).
    """

    def __init_subclass__(cls) -> None:
        """Note the two nouns."""
        given = next(
            (args for base in cls.__dict__.get("__orig_bases__", ()) if (args := typing.get_args(base))), None
        )
        if given and not isinstance(given[0], TypeVar):
            cls.Spec, cls.State = given

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

    def begin(self, wanted: Mapping[str, S]) -> None:
        """A survey begins: what the next `observe` reads whatever other kinds see may be asked for already.
        Returns at once, raises nothing.
        """

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


def differences(
    now: Mapping[str, Any] | None, wanted: Mapping[str, Any], path: str = ""
) -> tuple[Change, ...]:
    """The leaf fields in which two plain structures differ; None and missing are the same."""
    found: list[Change] = []
    for name in sorted({*(now or {}), *wanted}):
        before, after = (now or {}).get(name), wanted.get(name)
        here = f"{path}.{name}" if path else name
        if before == after:
            continue
        if (isinstance(after, Mapping) and isinstance(before, Mapping | None)) or (
            isinstance(before, Mapping) and after is None
        ):
            found += differences(before, after or {}, here)
        else:
            found.append(Change(here, before, after))
    return tuple(found)


UNFINISHED = "mark"
"""The field of the change that only finishes what an earlier run of the site began."""


def changes(spec: Spec, mark: Mark | None, world: Sequence[Change] = ()) -> tuple[Change, ...]:
    """What differs in the world, then what the file changed since it was applied; each field once.

    What bears a mark without `applied` (unfinished, or being adopted) is compared with the world alone:
    nothing is known of before.
    """
    if mark is not None and mark.applied is None:
        return (*world, Change(UNFINISHED, None, f"{mark.address} of {mark.site}"))
    found = {change.field: change for change in world}
    for change in differences(mark.applied if mark else None, spec.applied()):
        if not any(seen == change.field or seen.startswith(f"{change.field}.") for seen in found):
            found[change.field] = change if mark is None else _with_default(change, spec)
    return tuple(found.values())


def _with_default(change: Change, spec: Spec) -> Change:
    """The change, with the default for a value that one of both files leaves out."""
    if change.now is None:
        return replace(change, now=default_of(spec, change.field))
    return replace(change, wanted=default_of(spec, change.field)) if change.wanted is None else change

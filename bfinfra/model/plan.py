"""A plan: what will be done to each resource, in the order in which it may start."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bfinfra.model.compare import Change, Unknown
from bfinfra.model.errors import Problem, Warned
from bfinfra.model.partial import Partial
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step

if TYPE_CHECKING:
    from bfinfra.model.resource import State


class Action(enum.StrEnum):
    """The plan's action on a resource, derived from spec, state and steps."""

    CREATE = "create"
    KEEP = "keep"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    READ = "read"


@dataclass(frozen=True)
class Item:
    """One resource in a plan. `waits_for`: the keys that must be done first; `contents`: objects of others
    that a deletion deletes too.

    `because`: key → why it waits for it, if no field says so; `follows`: fields that differ only because the
    file changed others. `held`: why it is not run: it waits for a missing file, or for a resource that does.
    `settings`: bfinfra only changes settings of the object, which exists anyway (a host).
    """

    key: Key
    action: Action
    steps: tuple[Step, ...] = ()
    waits_for: tuple[Key, ...] = ()
    contents: tuple[str, ...] = ()
    follows: frozenset[str] = frozenset()
    because: Mapping[Key, str] = dataclasses.field(default_factory=dict)
    held: Problem | None = None
    settings: bool = False

    @property
    def shown(self) -> Action:
        """The action for people: settings that are up to date are kept, though JSON calls them read."""
        return Action.KEEP if self.settings and self.action is Action.READ else self.action

    @property
    def named(self) -> tuple[Change, ...]:
        """The changes made in the file or on the server, without those that follow from them."""
        return tuple(change for change in self.changes if change.field not in self.follows)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The fields that will differ, each once."""
        found: list[Change] = []  # a value may be a list, which no dict or set can contain
        for step in self.steps:
            found += [change for change in step.changes if change not in found]
        return tuple(found)

    @property
    def disruption(self) -> Disruption:
        """The worst of its steps."""
        order = list(Disruption)
        return max((step.disruption for step in self.steps), key=order.index, default=Disruption.NONE)


@dataclass(frozen=True)
class Plan:
    """`problems` stop an apply before its first write; `unreadable`: address or kind → why it could not be
    read; `partial`: set if the plan is about some resources only.
    """

    site: str
    items: tuple[Item, ...]
    problems: tuple[Problem, ...] = ()
    unreadable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    warnings: tuple[Warned, ...] = ()
    partial: Partial | None = None
    stale: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Address → why what was read of it are last known values."""
    lost: tuple[Key, ...] = ()
    """What it should delete, existed at an earlier check, and isn't found: gone, or out of sight."""

    @property
    def pending(self) -> tuple[Item, ...]:
        """The items that write."""
        return tuple(item for item in self.items if item.steps and item.held is None)

    @property
    def held(self) -> tuple[Item, ...]:
        """The items that wait for a missing file."""
        return tuple(item for item in self.items if item.held is not None)

    def _repr_html_(self) -> str:
        """The plan as a notebook shows it."""
        # by name, when a notebook asks for it: the model imports no renderer
        return str(import_module("bfinfra.render.notebook").plan(self))


def derive(
    spec: object | None, state: State | None, steps: Sequence[Step], *, managed: bool = True
) -> Action:
    """The action that these steps amount to."""
    if any(step.disruption is Disruption.REPLACE for step in steps):
        return Action.REPLACE if spec is not None else Action.DELETE
    if spec is None:
        return Action.DELETE if steps else Action.KEEP
    if not steps:
        return Action.KEEP if managed else Action.READ
    return made_or_changed(state)


def made_or_changed(state: State | None) -> Action:
    """The action on a resource that is to be as the file says, and is not."""
    return Action.CREATE if state is None or state.going else Action.UPDATE


JSON_NAMES = {"Commit": "Seal", "WriteRecord": "Note"}
"""The name in JSON where it differs from the class's: plans saved by earlier releases have it."""
JSON_FIELDS = {"existing": "standing", "precondition": "seen"}
"""The same for the names of fields."""


def step_data(step: Step) -> dict[str, Any]:
    """A step as plain data, as in a saved plan and the journal: its class, title and fields."""
    fields = {
        JSON_FIELDS.get(each.name, each.name): plain(getattr(step, each.name))
        for each in dataclasses.fields(step)
        if each.name != "changes" and each.compare
    }
    return {
        "step": JSON_NAMES.get(type(step).__name__, type(step).__name__),
        "title": step.title(),
        "fields": fields,
        "changes": [plain(c) for c in step.changes],
    }


def plain(value: object) -> Any:  # noqa: PLR0911 - one line a form
    """Anything in a step as JSON: secrets as references, unknown values as {"later": [key, field]}."""
    if isinstance(value, Secret):
        return {"secret": value.reference()}
    if isinstance(value, Unknown):
        return {"later": [str(value.key), value.field]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list, frozenset, set)):
        items = [plain(v) for v in value]
        return sorted(items, key=str) if isinstance(value, (set, frozenset)) else items
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def agrees(announced: object, fresh: object) -> bool:
    """Return whether fresh data is what was announced. An announced unknown value may have become
    anything.
    """
    if isinstance(announced, Mapping):
        if set(announced) == {"later"} and isinstance(announced["later"], list):
            return True
        return (
            isinstance(fresh, Mapping)
            and set(announced) == set(fresh)
            and all(agrees(v, fresh[k]) for k, v in announced.items())
        )
    if isinstance(announced, list):
        return isinstance(fresh, list) and len(announced) == len(fresh) and all(map(agrees, announced, fresh))
    return bool(announced == fresh)

"""Rebuilds a plan from its data, to show it. Its steps can't be run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bfinfra.model.compare import Change, Unknown
from bfinfra.model.errors import Place, Problem, Warned
from bfinfra.model.partial import Partial
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step


def plan_of(data: Mapping[str, Any]) -> Plan:
    """The plan of a document. Raises KeyError, TypeError or ValueError for a document that is no plan."""
    return Plan(
        data["site"],
        tuple(_item(each) for each in data["items"]),
        tuple(_problem(each) for each in data["problems"]),
        {each["address"]: each["why"] for each in data["unreadable"]},
        tuple(Warned(_problem(each)) for each in data["warnings"]),
        _partial(data["partial"]),
    )


def _item(data: Mapping[str, Any]) -> Item:
    return Item(
        Key(data["kind"], data["name"]),
        Action(data["action"]),
        tuple(_step(each) for each in data["steps"]),
        tuple(Key.parse(each) for each in data["waits_for"]),
        tuple(data["contents"]),
        frozenset(data["follows"]),
        {Key.parse(each): why for each, why in data["because"].items()},
        _problem(data["held"]) if data["held"] else None,
    )


def _step(data: Mapping[str, Any]) -> Step:
    """A step that prints the same. Each has a class of its own, as the disruption belongs to the class."""
    title = str(data["title"])
    own = {
        "title": lambda _: title,
        "disruption": Disruption(data["disruption"]),
        "destructive": bool(data["destructive"]),
        "why": str(data["why"]),
    }
    changes = tuple(
        Change(each["field"], _value(each["now"]), _value(each["wanted"])) for each in data["changes"]
    )
    fields = dict(data["fields"])
    cls = dataclasses.make_dataclass(
        str(data["step"]),
        [(name, Any) for name in fields],
        bases=(Step,),
        namespace=own,
        frozen=True,
        kw_only=True,
    )
    made: Step = cls(changes=changes, **fields)
    return made


def _value(data: Any) -> Any:
    """The value that `plain` turned into this data: a secret's reference, an unknown value, or the value
    itself.
    """
    match data:
        case {"secret": dict(reference)} if len(data) == len(reference) == 1:
            return Secret(*next((way, _target(target)) for way, target in reference.items()))
        case {"later": [str(key), str(field)]} if len(data) == 1:
            return Unknown(Key.parse(key) if "/" in key else key, field)
    return data


def _target(data: object) -> str | tuple[str, ...]:
    return tuple(map(str, data)) if isinstance(data, list) else str(data)


def _problem(data: Mapping[str, Any]) -> Problem:
    where = data["where"]
    if isinstance(where, Mapping):
        where = Place(Path(where["file"]), where["line"], where["column"])
    return Problem(data["what"], where, data["why"], data["next"])


def _partial(data: Mapping[str, Any] | None) -> Partial | None:
    if data is None:
        return None
    targets, keys = ([Key.parse(each) for each in data[name]] for name in ("targets", "resources"))
    return Partial(tuple(targets), frozenset(keys), data["left_out"])

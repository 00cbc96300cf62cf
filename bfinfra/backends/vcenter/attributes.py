"""Custom attributes, which hold notes on hosts and clusters. A definition is for the whole vCenter, so the
last note to go removes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from bfinfra.backends.vcenter import properties
from bfinfra.backends.vcenter.esxi_settings import Noted
from bfinfra.backends.vcenter.properties import Row
from bfinfra.model.errors import Exists, Missing, Rejected

Defined = Callable[[Any], Mapping[int, str]]


class LastOne:
    """Removes an attribute's definition with its last note, one caller at a time: two in parallel could leave
    a definition without notes, which no later run would notice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def drop(
        self, moid: str, notes: Callable[[], Mapping[str, tuple[str, str]]], empty: Callable[[bool], None]
    ) -> bool:
        """Remove a note; return whether it was the last. `notes`: name → id and note; `empty`: does it, and
        removes the definition too if its argument is true.
        """

        def last() -> bool:
            return not any(text and other != moid for other, text in notes().values())

        with self._lock:
            if not last():
                empty(False)
                if not last():
                    return False  # otherwise another machine's run removed its note at the same time
            empty(True)
            return True


def defined(content: Any) -> dict[int, str]:
    """Key → name of each attribute; {} if vCenter has none."""
    if content.customFieldsManager is None:
        return {}
    return names(properties.one(content, content.customFieldsManager, ["field"]))


def names(row: Row) -> dict[int, str]:
    """The same from a row with the manager's `field`."""
    return {each.key: each.name for each in row["field"] or ()}


def noted(
    content: Any, sort: type[Any], prefix: str, *, everyone: bool, ask: Defined | None = None
) -> list[tuple[str, Noted]]:
    """The entities of a type, each with its name and its attributes that have this prefix. Unless `everyone`:
    [] if no such attribute exists. `ask`: replaces `defined`.
    """
    known = {key: name for key, name in (ask or defined)(content).items() if name.startswith(prefix)}
    if not known and not everyone:
        return []
    rows = properties.below(content, content.rootFolder, {sort: ["name", "customValue"]}, properties.whole)
    return [
        (
            row.name,
            Noted(
                row.moid,
                {known[v.key]: v.value for v in row["customValue"] or () if v.key in known and v.value},
            ),
        )
        for row in rows
    ]


def keys(content: object, attribute: str, ask: Defined | None = None) -> list[int]:
    """The keys of the attribute with this name. `ask`: replaces `defined`."""
    return [int(key) for key, name in (ask or defined)(content).items() if name == attribute]


def write(content: Any, entity: Any, attribute: str, text: str) -> None:
    """Set the attribute of an entity; it is defined for entities of that type if it isn't yet."""
    manager = content.customFieldsManager
    found = keys(content, attribute)
    if not found:
        try:
            found = [int(manager.AddCustomFieldDef(attribute, type(entity), None, None).key)]
        except Exists:  # another run defined it meanwhile
            found = keys(content, attribute)
    manager.SetField(entity, found[0], text)


def drop(content: Any, entity: Any, attribute: str, *, last: bool) -> None:
    """Empty the attribute of an entity; the `last` one also removes the definition."""
    manager = content.customFieldsManager
    for key in keys(content, attribute):
        try:
            if last:
                manager.RemoveCustomFieldDef(key)
            else:
                manager.SetField(entity, key, "")
        except (Missing, Rejected):
            if key in defined(content):  # otherwise another's last note removed it meanwhile
                raise

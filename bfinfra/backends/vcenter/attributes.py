"""Custom attributes, in which notes on hosts and clusters are kept. A definition is the whole vCenter's, so
that the last note takes it along.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from bfinfra.backends.vcenter import properties
from bfinfra.backends.vcenter.esxi_settings import Noted
from bfinfra.backends.vcenter.properties import Row
from bfinfra.model.errors import Exists, Missing, Rejected

Defined = Callable[[Any], Mapping[int, str]]


class LastOne:
    """Who empties an attribute takes its definition along where no other has a note in it. One at a time.

    Two that empty theirs side by side would leave a definition without a note, of which nothing tells a run
    after a killed one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def drop(
        self, moid: str, notes: Callable[[], Mapping[str, tuple[str, str]]], empty: Callable[[bool], None]
    ) -> None:
        """`notes`: id and note of each, by name; `empty`: do it, the definition included where told so."""

        def last() -> bool:
            return not any(text and other != moid for other, text in notes().values())

        with self._lock:
            if not last():
                empty(False)
                if not last():
                    return  # else the others went meanwhile, and saw this one's note: another machine's run
            empty(True)


def defined(content: Any) -> dict[int, str]:
    """What attributes are called, by their key; none where vCenter keeps none."""
    if content.customFieldsManager is None:
        return {}
    return names(properties.one(content, content.customFieldsManager, ["field"]))


def names(row: Row) -> dict[int, str]:
    """The same of a row that has the manager's `field`."""
    return {each.key: each.name for each in row["field"] or ()}


def noted(
    content: Any, sort: type[Any], prefix: str, *, everyone: bool, ask: Defined | None = None
) -> dict[str, Noted]:
    """The entities of a sort by name, with those of their attributes that begin so. Unless `everyone`: none
    where there is no such attribute at all. `ask`: who tells what there is, in place of `defined`.
    """
    known = {key: name for key, name in (ask or defined)(content).items() if name.startswith(prefix)}
    if not known and not everyone:
        return {}
    rows = properties.below(content, content.rootFolder, {sort: ["name", "customValue"]}, properties.whole)
    return {
        unquote(row["name"] or ""): Noted(
            row.moid, {known[v.key]: v.value for v in row["customValue"] or () if v.key in known and v.value}
        )
        for row in rows
    }


def keys(content: Any, attribute: str, ask: Defined | None = None) -> list[int]:
    """The keys of the attribute of this name. `ask`: who tells what there is, in place of `defined`."""
    return [int(key) for key, name in (ask or defined)(content).items() if name == attribute]


def write(content: Any, entity: Any, attribute: str, text: str) -> None:
    """Set the attribute of an entity; it is defined for entities of that type where it isn't yet."""
    manager = content.customFieldsManager
    found = keys(content, attribute)
    if not found:
        try:
            found = [int(manager.AddCustomFieldDef(attribute, type(entity), None, None).key)]
        except Exists:  # another run defined it in between
            found = keys(content, attribute)
    manager.SetField(entity, found[0], text)


def drop(content: Any, entity: Any, attribute: str, *, last: bool) -> None:
    """Empty the attribute of an entity; the `last` one takes the definition along."""
    manager = content.customFieldsManager
    for key in keys(content, attribute):
        try:
            if last:
                manager.RemoveCustomFieldDef(key)
            else:
                manager.SetField(entity, key, "")
        except (Missing, Rejected):
            if key in defined(content):  # else another's last note took it along in between
                raise

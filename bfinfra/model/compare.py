"""Compares a spec with the observed state, field by field.

What the file leaves out has one meaning: it is chosen by its default when an object is made, and stays as it
is on an object that is there. `drift` finds the differences in what the file says, and a step writes the
fields that its changes name (`touches`), and no others. So a plan shows all that is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bfinfra.model.defaults import default_of
from bfinfra.model.mark import Mark, above, below
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.resource import Part, Spec


@dataclass(frozen=True, slots=True)
class Change:
    """A field that will change: dotted path, the value now, the desired value. Never contains a secret."""

    field: str
    now: Any
    wanted: Any


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is known later, from another resource or once a file is there: `(known after
    tanzu_cluster/cluster-01: endpoint)`.
    """

    key: Key | str
    field: str

    def __str__(self) -> str:
        return f"(known after {self.key}: {self.field})"


def differences(
    now: Mapping[str, object] | None, wanted: Mapping[str, object], path: str = ""
) -> tuple[Change, ...]:
    """The leaf fields in which two plain structures differ. None and missing are the same."""
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


def adopting(mark: Mark | None) -> bool:
    """Return whether the object gets this mark now, and nothing else."""
    return mark is not None and mark.adopting


def drift(
    spec: Spec, mark: Mark | None, now: Mapping[str, object], wanted: Mapping[str, object]
) -> tuple[Change, ...]:
    """The differences in the fields that the file says, or said when it was last applied: such a field goes
    back to its default. Fields of a part count one by one, a list or map counts as a whole. None while the
    object is adopted: it gets its mark, and nothing else.
    """
    if adopting(mark):
        return ()
    said = frozenset(_said(spec, (mark.applied if mark else None) or {}))
    return tuple(each for each in differences(now, wanted) if any(_within(each.field, name) for name in said))


def description(spec: Spec, now: str | None, mark: Mark, was: Mark | None) -> str:
    """The description to write, with the mark below it: the file's text if it says one, or said one when it
    was last applied; else the text that is there. `now`: None if there is no object yet; `was`: its mark.
    """
    wanted = str(getattr(spec, "description", ""))
    stays = now is not None and "description" not in _said(spec, (was.applied if was else None) or {})
    return below(above(now) if stays else wanted, mark)


def touches(changes: Iterable[Change], field: str) -> bool:
    """Return whether one of the changes is in this field or its parts, or in what it is a part of."""
    return any(_within(each.field, field) for each in changes)


def _within(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _said(part: Part, applied: Mapping[str, object], path: str = "") -> Iterator[str]:
    for name in part.model_fields_set | applied.keys():
        value, before = getattr(part, name, None), applied.get(name)
        if isinstance(value, Part):
            yield from _said(value, before if isinstance(before, Mapping) else {}, f"{path}{name}.")
        else:
            yield f"{path}{name}"


UNFINISHED = "mark"
"""The field of a change that only finishes what an earlier run of the site started."""


def changes(spec: Spec, mark: Mark | None, world: Sequence[Change] = ()) -> tuple[Change, ...]:
    """The differences from the observed state, then what the file changed since it was applied; each field
    once.

    A mark without `applied` (unfinished, or being adopted) does not contain what was applied.
    """
    if mark is not None and mark.applied is None:
        return (*world, Change(UNFINISHED, None, f"{mark.address} of {mark.site}"))
    found = {change.field: change for change in world}
    for change in differences(mark.applied if mark else None, spec.applied()):
        if not any(path == change.field or path.startswith(f"{change.field}.") for path in found):
            found[change.field] = change if mark is None else _with_default(change, spec)
    return tuple(found.values())


def _with_default(change: Change, spec: Spec) -> Change:
    """The change, with the field's default where one of the two files omits it."""
    if change.now is None:
        return replace(change, now=default_of(spec, change.field))
    return replace(change, wanted=default_of(spec, change.field)) if change.wanted is None else change

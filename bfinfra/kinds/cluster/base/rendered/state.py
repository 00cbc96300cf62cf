"""The live objects of a rendering, and the record of what types they have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.kinds.cluster.base.objects import Object
from bfinfra.kinds.cluster.base.rendered.objects import Id, id_of
from bfinfra.kinds.cluster_locator import WHOLE, Cluster
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

REMOVAL = "removal"
"""The record's key for the hooks that run when the objects are deleted."""
EVENTS = ("pre-delete", "post-delete")
"""Helm's events around the deletion of the objects."""
HOOKS = "hooks-"
"""The record's key for a phase of hooks begins so."""


@dataclass(frozen=True)
class Thing:
    """One live object."""

    mark: Mark | None
    manifest: Object = field(repr=False)

    @property
    def going(self) -> bool:
        """True if it is being deleted."""
        return bool(self.manifest["metadata"].get("deletionTimestamp"))


@dataclass(frozen=True)
class Record:
    """The ConfigMap that records the objects and their types, `apps/v1 Deployment`, so that all can be found.
    `objects`: None in a record of an earlier version.
    """

    mark: Mark | None
    types: tuple[str, ...]
    objects: tuple[Id, ...] | None = None
    going: bool = False
    hooks: Mapping[str, str] = field(default_factory=dict)
    """Phase → digest of the rendering whose hooks ran."""
    removal: tuple[Object, ...] = field(default=(), repr=False)
    """The hooks that run when the objects are deleted."""


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The objects in a cluster of a rendering. `namespace`: of the record."""

    cluster: Annotated[str, Ref(*WHOLE)]
    namespace: Annotated[str, Ref("namespace", optional=True)]
    home: Endpoint
    record: Record | None = None
    things: Mapping[Id, Thing] = field(default_factory=dict)


def record_name(kind: str, name: str) -> str:
    """The ConfigMap's name."""
    return f"bfinfra-{kind.replace('_', '-')}-{name}"


def record_of(obj: Object) -> Record:
    """The record in a ConfigMap."""
    data = obj.get("data") or {}
    known = tuple(str(each) for each in _list(data, "types") or () if str(each).count(" ") == 1)
    places = _list(data, "objects")
    objects = (
        None
        if places is None
        else tuple(Id(*map(str, each)) for each in places if isinstance(each, list) and len(each) == 4)
    )
    ran = {key.removeprefix(HOOKS): str(value) for key, value in data.items() if key.startswith(HOOKS)}
    going = bool(obj["metadata"].get("deletionTimestamp"))
    return Record(mark_of(obj), known, objects, going, ran, removal_of(obj))


def _list(data: Mapping[str, str], key: str) -> list[object] | None:
    try:
        found = json.loads(data.get(key) or "null")
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def removal_data(hooks: Iterable[Object]) -> dict[str, str]:
    """What a record has of the hooks of the removal: those, and that none ran yet."""
    return {REMOVAL: json.dumps([*hooks]), **{f"{HOOKS}{event}": "" for event in EVENTS}}


def removal_of(obj: Object) -> tuple[Object, ...]:
    """The hooks of the removal in a record."""
    return tuple(each for each in _list(obj.get("data") or {}, REMOVAL) or () if isinstance(each, dict))


def state_of(
    record: Object | None,
    objects: Iterable[Object],
    cluster: Cluster,
    namespace: str,
    contents: tuple[str, ...] = (),
) -> State:
    """The state. An object without a mark, or of another resource, makes the whole one such."""
    things = {id_of(obj): Thing(mark_of(obj), obj) for obj in objects}
    noted = record_of(record) if record else None
    marks = [*([noted.mark] if noted else []), *(thing.mark for thing in things.values())]
    return State(
        mark=_common(noted, marks),
        cluster=cluster.key.name,
        namespace=namespace,
        home=cluster.endpoint,
        record=noted,
        things=things,
        contents=contents,
    )


def _common(noted: Record | None, marks: list[Mark | None]) -> Mark | None:
    owners = {mark.owner: mark for mark in marks if mark is not None}
    own = noted.mark if noted else None
    other = next((mark for owner, mark in owners.items() if own is None or owner != own.owner), None)
    if own is not None and other is not None:
        return other
    if None in marks:
        return None
    return own or (other.pending if other else None)

"""The live Secrets of a cluster, compared in memory with the desired content."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.kinds.cluster.base.objects import Object
from bfinfra.kinds.cluster_locator import CLUSTERS, Cluster
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark, common
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

Content = Mapping[str, Mapping[str, bytes]]
"""Secret name → key → value."""
Unchanged = Callable[[Sequence[Object]], bool]


@dataclass(frozen=True)
class Copy:
    """The Secrets of one namespace. `right`: whether all exist with the desired content; `mark`: the mark
    that they have; `marks` and `uids`: theirs, by name.
    """

    names: frozenset[str]
    right: bool
    mark: Mark | None
    marks: Mapping[str, Mark | None] = field(default_factory=dict)
    uids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """The copies by namespace."""

    cluster: Annotated[str, Ref(*CLUSTERS)]
    home: Endpoint
    copies: Mapping[str, Copy] = field(default_factory=dict)
    namespaces: tuple[Annotated[str, Ref("namespace", optional=True)], ...] = ()


def state_of(
    objects: Sequence[Object], cluster: Cluster, content: Content | None, unchanged: Unchanged
) -> State:
    """The state of a resource's Secrets in a cluster, by namespace."""
    spaces: dict[str, list[Object]] = {}
    for obj in objects:
        if not obj["metadata"].get("deletionTimestamp"):
            spaces.setdefault(obj["metadata"]["namespace"], []).append(obj)
    copies = {space: _copy(found, content, unchanged) for space, found in sorted(spaces.items())}
    return State(
        mark=common([mark_of(o) for o in objects]),
        cluster=cluster.key.name,
        home=cluster.endpoint,
        copies=copies,
        namespaces=tuple(copies),
    )


def _copy(objects: Sequence[Object], content: Content | None, unchanged: Unchanged) -> Copy:
    held = {obj["metadata"]["name"]: values_of(obj) for obj in objects}
    right = (
        unchanged(objects)
        if content is None
        else all(
            name in held and all(held[name].get(key) == value for key, value in values.items())
            for name, values in content.items()
        )
    )
    bearing = [obj for obj in objects if content is None or obj["metadata"]["name"] in content]
    marks = {obj["metadata"]["name"]: mark_of(obj) for obj in objects}
    uids = {obj["metadata"]["name"]: str(obj["metadata"].get("uid", "")) for obj in objects}
    return Copy(frozenset(held), right, common([mark_of(obj) for obj in bearing]), marks, uids)


def values_of(obj: Object) -> dict[str, bytes]:
    """The content of a Secret; values that are not base64 count as empty."""
    found = {}
    for key, text in (obj.get("data") or {}).items():
        try:
            found[key] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            found[key] = b""
    return found

"""The steps of a rendering: several objects in one step, each by a request of its own. A step has no content
of objects, as a rendering may have secrets: it is sent from what was rendered last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from bfinfra.kinds.cluster.base.rendered.objects import Id, listed
from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Right, Use, may
from bfinfra.model.step import Step

RECORD = "configmaps"
Fields = dict[str, Any]
"""The fields that the steps of a resource have in common."""


@dataclass(frozen=True, kw_only=True)
class Begin(Step):
    """begin the record {record} in namespace {namespace} of {cluster}"""

    rights = (may("create", RECORD, "record"),)

    record: str
    namespace: str
    cluster: str
    home: Endpoint | Unknown
    name: str
    mark: Mark
    types: tuple[str, ...]
    objects: tuple[Id, ...]
    removal: bool = False
    """Whether the hooks of the removal are noted, too: they are sent from what was rendered last."""

    def manifest(self) -> dict[str, Any]:
        """The record, without hooks."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.record, "namespace": self.namespace},
            "data": {"types": json.dumps(sorted(self.types)), "objects": json.dumps(sorted(self.objects))},
        }


@dataclass(frozen=True, kw_only=True)
class Extend(Begin):
    """note further types of objects in the record {record}"""

    rights = (may("patch", RECORD, "record"),)


@dataclass(frozen=True, kw_only=True)
class Commit(Begin):
    """note in {record} what was applied"""

    rights = (may("patch", RECORD, "record"),)


@dataclass(frozen=True, kw_only=True)
class Objects(Step):
    """change objects"""

    rights: ClassVar[tuple[Right, ...]] = ()
    """Their types are known from the rendering only, see `RenderedObjects.own_rights`."""
    name: str
    cluster: str
    home: Endpoint | Unknown
    objects: tuple[Id, ...]
    mark: Mark

    def title(self) -> str:
        """Names the objects, or counts many by kind."""
        return super().title().replace("objects", listed(self.objects), 1)


@dataclass(frozen=True, kw_only=True)
class Create(Objects):
    """create objects in {cluster}"""


@dataclass(frozen=True, kw_only=True)
class CreateAndWait(Create):
    """create objects in {cluster}, and wait until they are ready"""

    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Define(CreateAndWait):
    """create objects in {cluster}, and wait until it serves them"""


@dataclass(frozen=True, kw_only=True)
class Update(Objects):
    """change objects in {cluster}"""

    uids: Mapping[Id, str] = field(default_factory=dict)
    """The objects that get their mark and nothing else, by their uids."""


@dataclass(frozen=True, kw_only=True)
class Redefine(Update):
    """change objects in {cluster}, and wait until it serves them"""

    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Replace(Objects):
    """delete objects from {cluster}, to make them anew with fields that can't change"""

    destructive = True
    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class Prune(Objects):
    """delete objects from {cluster}, which the rendering no longer has"""

    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class PrunePrecious(Prune):
    """delete objects from {cluster}, which the rendering no longer has, with all that is in them"""

    destructive = True


@dataclass(frozen=True, kw_only=True)
class Delete(Objects):
    """delete objects from {cluster}"""

    destructive = True
    waits_ready = True
    uses = (Use.DESTROY,)


@dataclass(frozen=True, kw_only=True)
class RunHook(Create):
    """run the chart's hook objects in {cluster} {phase} the other objects, and wait until it has finished"""

    waits_ready = True
    phase: str


@dataclass(frozen=True, kw_only=True)
class RunRemovalHook(Create):
    """run the chart's {phase} hook objects in {cluster}, and wait until it has finished"""

    waits_ready = True
    uses = (Use.DESTROY,)
    phase: str
    record: str
    namespace: str


@dataclass(frozen=True, kw_only=True)
class AwaitHook(Objects):
    """wait until the chart's hook objects in {cluster} has finished"""

    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class AwaitObjects(Objects):
    """wait until objects in {cluster} are ready, before hooks run"""

    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class DropHook(Objects):
    """delete objects from {cluster}, which a hook of the chart left"""

    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class NoteHooks(Step):
    """note in {record} that the hooks {phase} the other objects have run"""

    rights = (may("patch", RECORD, "record"),)

    record: str
    namespace: str
    cluster: str
    home: Endpoint | Unknown
    phase: str
    rendered: str


@dataclass(frozen=True, kw_only=True)
class NoteRemovalHooks(NoteHooks):
    """note in {record} that the {phase} hooks have run"""

    uses = (Use.DESTROY,)


@dataclass(frozen=True, kw_only=True)
class Forget(Step):
    """delete the record {record} from namespace {namespace} of {cluster}"""

    destructive = True
    rights = (may("delete", RECORD, "record"),)
    uses = (Use.DESTROY,)

    record: str
    namespace: str
    cluster: str
    home: Endpoint


STEPS: tuple[type[Step], ...] = (
    Begin,
    Extend,
    RunHook,
    RunRemovalHook,
    AwaitHook,
    NoteHooks,
    NoteRemovalHooks,
    DropHook,
    AwaitObjects,
    Define,
    Create,
    CreateAndWait,
    Redefine,
    Update,
    Replace,
    Prune,
    PrunePrecious,
    Delete,
    Forget,
    Commit,
)

"""The steps of a rendering: several objects in one step, each by a request of its own. A step has no content
of objects, as a rendering may have secrets: it is sent from what was rendered last.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from bfinfra.kinds.cluster.base.rendered.objects import Id, listed
from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Right, Use, may
from bfinfra.model.step import Step

RECORD = "configmaps"


@dataclass(frozen=True, kw_only=True)
class Begin(Step):
    """begin the record {record} in namespace {namespace} of {cluster}"""

    rights = (may("create", RECORD, "record"),)

    record: str
    namespace: str
    cluster: str
    home: Endpoint | Unknown
    mark: Mark
    types: tuple[str, ...]

    def manifest(self) -> dict[str, Any]:
        """The record."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.record, "namespace": self.namespace},
            "data": {"types": json.dumps(sorted(self.types))},
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

    settles = True


@dataclass(frozen=True, kw_only=True)
class Define(CreateAndWait):
    """create objects in {cluster}, and wait until it serves them"""


@dataclass(frozen=True, kw_only=True)
class Update(Objects):
    """change objects in {cluster}"""


@dataclass(frozen=True, kw_only=True)
class Redefine(Update):
    """change objects in {cluster}, and wait until it serves them"""

    settles = True


@dataclass(frozen=True, kw_only=True)
class Replace(Objects):
    """delete objects from {cluster}, to make them anew with fields that can't change"""

    destructive = True
    settles = True


@dataclass(frozen=True, kw_only=True)
class Prune(Objects):
    """delete objects from {cluster}, which the rendering no longer has"""

    settles = True


@dataclass(frozen=True, kw_only=True)
class PrunePrecious(Prune):
    """delete objects from {cluster}, which the rendering no longer has, with all that is in them"""

    destructive = True


@dataclass(frozen=True, kw_only=True)
class Delete(Objects):
    """delete objects from {cluster}"""

    destructive = True
    settles = True
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

"""The steps of a machine and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, may
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step

VMS = "virtualmachines.vmoperator.vmware.com"
SERVICES = "virtualmachineservices.vmoperator.vmware.com"
CLAIMS = "persistentvolumeclaims"


@dataclass(frozen=True, kw_only=True)
class OfVm(Step):
    """A step about a machine or one of its parts."""

    name: str
    namespace: str
    home: Endpoint | Unknown


@dataclass(frozen=True, kw_only=True)
class Await(OfVm):
    """wait until {what}"""

    rights = ()
    what: str


@dataclass(frozen=True, kw_only=True)
class Create(OfVm):
    """create VM {name} in {namespace}"""

    rights = (may("create", VMS, "namespace"),)
    manifest: Mapping[str, Any] | Unknown


@dataclass(frozen=True, kw_only=True)
class Update(OfVm):
    """update VM {name} in {namespace}"""

    rights = (may("get patch", VMS, "namespace"),)
    manifest: Mapping[str, Any] | Unknown


@dataclass(frozen=True, kw_only=True)
class Start(Update):
    """start VM {name} in {namespace}"""


@dataclass(frozen=True, kw_only=True)
class Stop(Update):
    """shut VM {name} in {namespace} down, to give it another class"""

    disruption = Disruption.POWER_CYCLE
    why = "CPUs and memory change while the VM is off"
    waits_ready = True

    running: Mapping[str, object]
    """The manifest with which it runs as before."""

    @property
    def way_back(self) -> Step | None:
        """Start it with the class that it had."""
        return Start(name=self.name, namespace=self.namespace, home=self.home, manifest=self.running)


@dataclass(frozen=True, kw_only=True)
class WriteSecret(OfVm):
    """write the Secret of VM {name} in {namespace}; the guest reads it at its next start"""

    rights = (may("get create patch", "secrets", "namespace"),)
    manifest: Mapping[str, Any] | Unknown
    source: Mapping[str, Secret]
    """References to the content, never the content."""


@dataclass(frozen=True, kw_only=True)
class DropSecret(OfVm):
    """delete the Secret of VM {name} in {namespace}"""

    rights = (may("delete", "secrets", "namespace"),)


@dataclass(frozen=True, kw_only=True)
class MakeDisk(OfVm):
    """make disk {disk} of VM {name} in {namespace}"""

    rights = (may("get create patch", CLAIMS, "namespace"),)
    disk: str
    manifest: Mapping[str, Any] | Unknown


@dataclass(frozen=True, kw_only=True)
class SetDisk(MakeDisk):
    """change disk {disk} of VM {name} in {namespace}"""

    rights = (may("get patch", CLAIMS, "namespace"),)


@dataclass(frozen=True, kw_only=True)
class KeepDisk(OfVm):
    """let disk {disk} outlive VM {name} in {namespace}"""

    rights = (may("patch", CLAIMS, "namespace"),)
    disk: str


@dataclass(frozen=True, kw_only=True)
class Clear(OfVm):
    """take the properties {keys} out of VM {name} in {namespace}, to write them anew"""

    rights = (may("patch", VMS, "namespace"),)
    keys: str
    api: str
    left: tuple[Mapping[str, Any], ...]
    """The properties that stay."""


@dataclass(frozen=True, kw_only=True)
class ReleaseDisk(SetDisk):
    """let disk {disk}, which outlives its VM, go with VM {name} in {namespace}"""

    destructive = True
    uses = (Use.DESTROY,)


@dataclass(frozen=True, kw_only=True)
class DropDisk(OfVm):
    """delete disk {disk} of VM {name} in {namespace} and its data"""

    destructive = True
    rights = (may("delete", CLAIMS, "namespace"),)
    disk: str


@dataclass(frozen=True, kw_only=True)
class Expose(OfVm):
    """open ports {ports} to VM {name} in {namespace}"""

    rights = (may("get create patch", SERVICES, "namespace"),)
    ports: str
    manifest: Mapping[str, Any] | Unknown


@dataclass(frozen=True, kw_only=True)
class Hide(OfVm):
    """close the ports to VM {name} in {namespace}"""

    rights = (may("delete", SERVICES, "namespace"),)
    api: str


@dataclass(frozen=True, kw_only=True)
class Delete(OfVm):
    """delete VM {name} in {namespace}, its disks and its service"""

    destructive = True
    rights = (may("delete", VMS, "namespace"),)
    uses = (Use.DESTROY,)
    api: str


@dataclass(frozen=True, kw_only=True)
class Replace(Delete):
    """delete VM {name} in {namespace} to make it anew with {what}; {kept}"""

    disruption = Disruption.REPLACE
    why = "this can't be changed in a VM that is there"
    waits_ready = True
    uses = (Use.APPLY,)
    what: str
    kept: str

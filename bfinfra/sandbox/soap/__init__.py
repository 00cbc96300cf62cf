"""vCenter's SOAP API over the inventory, dispatched by pyVmomi's own type metadata."""

from bfinfra.sandbox.soap.door import soap_door
from bfinfra.sandbox.soap.nfc import esx_door
from bfinfra.sandbox.soap.pbm import pbm_door

__all__ = ["esx_door", "pbm_door", "soap_door"]

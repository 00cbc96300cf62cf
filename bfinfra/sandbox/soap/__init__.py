"""vCenter's SOAP API over the inventory, dispatched by pyVmomi's own type metadata."""

from bfinfra.sandbox.soap.door import soap_door

__all__ = ["soap_door"]

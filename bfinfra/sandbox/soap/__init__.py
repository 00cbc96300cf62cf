"""vCenter's SOAP API over the inventory, dispatched by pyVmomi's own type metadata."""

from bfinfra.sandbox.soap.handler import soap_handler
from bfinfra.sandbox.soap.nfc import esx_handler
from bfinfra.sandbox.soap.pbm import pbm_handler

__all__ = ["esx_handler", "pbm_handler", "soap_handler"]

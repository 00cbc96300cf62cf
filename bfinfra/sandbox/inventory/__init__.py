"""vCenter's managed objects: one inventory that the SOAP and REST APIs share."""

from bfinfra.sandbox.inventory.built import BuiltInventory
from bfinfra.sandbox.inventory.managed import Managed
from bfinfra.sandbox.inventory.store import Inventory

__all__ = ["BuiltInventory", "Inventory", "Managed"]

"""vCenter: SOAP and REST on one session each, as small typed operations and frozen values."""

from bfinfra.backends.vcenter.client import VCenter

__all__ = ["VCenter"]

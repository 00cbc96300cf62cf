"""OVA files: their contents, whether they are complete, and streams of their disks. Hostile files are refused
before they are read whole.
"""

from __future__ import annotations

from bfinfra.backends.archives.tar import Member
from bfinfra.backends.ova.contents import Disk, Hardware, Network, Option, Ova, Product, Property
from bfinfra.backends.ova.inspect import inspect
from bfinfra.backends.ova.read import read, read_from
from bfinfra.backends.ova.remote import RemoteSource
from bfinfra.backends.ova.source import LocalSource, Source
from bfinfra.backends.ova.values import check
from bfinfra.backends.ova.verify import verify

__all__ = [
    "Disk",
    "Hardware",
    "LocalSource",
    "Member",
    "Network",
    "Option",
    "Ova",
    "Product",
    "Property",
    "RemoteSource",
    "Source",
    "check",
    "inspect",
    "read",
    "read_from",
    "verify",
]

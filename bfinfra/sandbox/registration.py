"""Checks that a Bitfusion server can register with its vCenter: by the right GUID, URL and thumbprint."""

from __future__ import annotations

import hashlib
import re
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bfinfra.sandbox.inventory.vapp import full_id, values_of

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Inventory, Managed


def registers(inventory: Inventory, vm: Managed) -> bool:
    """Return whether the appliance's properties match its vCenter. An appliance without such properties
    registers by hand.
    """
    vapp, values = vm["config"].vAppConfig, values_of(vm)
    asked = {
        part: values.get(full_id(each), "")
        for each in (vapp.property if vapp else ())
        if (part := _part(f"{each.id} {each.label}"))
    }
    right = {"guid": _guid, "url": _url, "thumbprint": _thumbprint}
    return all(right[part](inventory, value) for part, value in asked.items())


def _part(text: str) -> str:
    """Return the fact about vCenter that a property holds; "" for any other property."""
    words = text.lower()
    return next((part for part in ("guid", "thumbprint", "url") if "vcenter" in words and part in words), "")


def _guid(inventory: Inventory, value: str) -> bool:
    return value.lower() == str(inventory.world.vcenter.instance_uuid).lower()


def _url(inventory: Inventory, value: str) -> bool:
    vcenter, parts = inventory.world.vcenter, urlsplit(value)
    return (parts.scheme, parts.hostname, parts.port or 443) == ("https", vcenter.host.lower(), vcenter.port)


def _thumbprint(inventory: Inventory, value: str) -> bool:
    if inventory.certificate is None:
        return True
    der = ssl.PEM_cert_to_DER_cert(inventory.certificate(inventory.world.vcenter.host))
    shown = (hashlib.sha1(der, usedforsecurity=False).hexdigest(), hashlib.sha256(der).hexdigest())
    return re.sub(r"[^0-9a-f]", "", value.lower()) in shown

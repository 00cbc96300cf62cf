"""Whether a Bitfusion server can register with its vCenter: it needs the right GUID, URL and
thumbprint.
"""

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
    """Whether all that the appliance's properties ask of its vCenter is right. One that asks for nothing
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
    """What of vCenter a property asks for; "" for any other one."""
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

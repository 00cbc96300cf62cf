"""Reads the identity of a vCenter."""

from __future__ import annotations

import hashlib
from urllib.parse import urlsplit

from bfinfra.backends import tls
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.model.errors import RemoteError, Untrusted
from bfinfra.model.site import VCenterSettings


def look(settings: VCenterSettings, transport: Transport, guid: str) -> Identity:
    """The identity of the vCenter with this GUID; its certificate is read over its own connection."""
    parts = urlsplit(f"https://{settings.server}")
    host, port = parts.hostname or "", parts.port or 443
    url = f"https://{settings.server.removesuffix(':443')}"
    try:
        der, names = tls.trusted(transport.where(host, port), host, settings.trust)
    except (
        OSError,
        RemoteError,
        Untrusted,
    ):  # perhaps behind a proxy: what is unknown is neither filled in nor compared
        return Identity(settings.server, guid, url)
    sha1 = hashlib.sha1(der, usedforsecurity=False).hexdigest()
    return Identity(
        settings.server, guid, url, tls.colons(sha1), tls.colons(hashlib.sha256(der).hexdigest()), names
    )

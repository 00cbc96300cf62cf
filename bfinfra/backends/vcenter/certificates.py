"""The trust for ESXi hosts that vCenter refers to: vCenter's own authorities, else the certificate that
vCenter has for the host.

A lease also has its host's SHA-1 thumbprint; SHA-1 is never trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import ssl
from collections.abc import Callable
from typing import Any

import httpx2
from pyVmomi import vim

from bfinfra.backends import tls
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import RemoteError, Untrusted
from bfinfra.model.trust import Trust


class HostTrust:
    """`authorities`: vCenter's own as PEM, read when needed."""

    def __init__(self, session: SoapSession, transport: Transport, authorities: Callable[[], str]) -> None:
        self._session, self._transport, self._authorities = session, transport, authorities

    def of(self, url: httpx2.URL, moid: str) -> Trust:
        """The trust for an upload's address; `moid`: the host of the machine. Raises Untrusted with both
        fingerprints.
        """
        if url.scheme != "https":
            raise Untrusted(
                f"the lease names {url.scheme}://{url.host}",
                server=self._session.server,
                why="it could be read and changed on the way",
            )
        if url.host == httpx2.URL(f"https://{self._session.server}").host:
            return self._session.settings.trust
        by_authority, server = Trust(ca_pem=self._authorities()), f"{url.host}:{url.port or 443}"
        address = self._transport.where(url.host, url.port or 443)
        try:
            if not (objection := tls.objection(address, url.host, by_authority)):
                return by_authority
            shown = hashlib.sha256(tls.shown(address, url.host)).hexdigest()
        except OSError:
            return by_authority  # no answer: the upload reports it
        held = self._held(moid)
        if held == shown:
            return Trust(sha256=held)
        known = (
            f"vCenter holds SHA-256 {tls.colons(held)} of its host"
            if held
            else "vCenter shows no certificate of its host"
        )
        raise Untrusted(
            "the ESXi host's certificate is not trusted",
            server=server,
            why=f"{objection}; it shows SHA-256 {tls.colons(shown)}, {known}",
            next=(
                "renew the host's certificate in vCenter (Configure > Certificate > Renew), or reconnect "
                "the host, and run again"
            ),
        )

    def _held(self, moid: str) -> str:
        """SHA-256 of the certificate that vCenter has for the host; "" if it shows none."""
        with contextlib.suppress(RemoteError):  # reading it needs a privilege that nothing else does
            row = self._session.read(
                lambda content: properties.one(
                    content, refs.refer(content, vim.HostSystem, moid), ["config.certificate"]
                )
            )
            return _sha256(row["config.certificate"])
        return ""


def _sha256(written: Any) -> str:
    """The SHA-256 of a certificate in vCenter's form: the bytes of its PEM, signed, or DER."""
    raw = bytes(each & 0xFF for each in written or ())
    with contextlib.suppress(ValueError):
        raw = ssl.PEM_cert_to_DER_cert(raw.decode("ascii"))
    return hashlib.sha256(raw).hexdigest() if raw else ""

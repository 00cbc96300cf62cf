"""The way into a vCenter: one connection, and which API versions it speaks. Needs no client library: it can
be asked while that is imported.
"""

from __future__ import annotations

import threading
from urllib.parse import quote

import httpx2

from bfinfra.backends.ahead import Ahead
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter.soap_transport import SoapTransport
from bfinfra.model import process
from bfinfra.model.site import VCenterSettings


def agent(site: str) -> str:
    """The user agent of a site's run: who begins the next run can tell what was left behind."""
    return f"bfinfra ({quote(site) or '-'}; {quote(process.me(), safe='/')})"


class Connector:
    """Connects when first asked, or at once with `connect`."""

    def __init__(self, settings: VCenterSettings, seam: Transport, site: str = "") -> None:
        self._settings = settings
        self._seam = seam
        self._site = site
        self._line: SoapTransport | None = None
        self._lock = threading.Lock()
        self._versions = Ahead(lambda: self.line().get("/sdk/vimServiceVersions.xml"), "door")

    def connect(self) -> None:
        """Connect now, and ask for the versions; who needs them first hears what came of it."""
        self._versions.begin()

    def versions(self) -> httpx2.Response:
        """The server's list of versions. Raises RemoteError."""
        return self._versions.take()

    def line(self) -> SoapTransport:
        """The wire of SOAP."""
        with self._lock:
            if self._line is None:
                address = f"https://{self._settings.server}"
                self._line = SoapTransport(
                    self._seam.transport(address, self._settings.trust),
                    address,
                    agent(self._site),
                    self._seam.timeout,
                )
            return self._line

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            line, self._line = self._line, None
        if line is not None:
            line.close()

"""The way into a vCenter: one connection, and which API versions it speaks. Needs no client library: it can
be asked while that is imported.
"""

from __future__ import annotations

import threading
from urllib.parse import quote

import httpx2

from bfinfra.backends.ahead import Ahead
from bfinfra.backends.transport import Transport
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
        self._http: httpx2.Client | None = None
        self._lock = threading.Lock()
        self._versions = Ahead(lambda: self.http().get("/sdk/vimServiceVersions.xml"), "door")

    def connect(self) -> None:
        """Connect now, and ask for the versions; who needs them first hears what came of it."""
        self._versions.begin()

    def versions(self) -> httpx2.Response:
        """The server's list of versions. Raises RemoteError."""
        return self._versions.take()

    def http(self) -> httpx2.Client:
        """The client of SOAP; it keeps the session's cookie."""
        with self._lock:
            if self._http is None:
                self._http = self._seam.client(
                    f"https://{self._settings.server}",
                    self._settings.trust,
                    headers={"User-Agent": agent(self._site)},
                )
            return self._http

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            http, self._http = self._http, None
        if http is not None:
            http.close()

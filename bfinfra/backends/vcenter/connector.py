"""The connection to a vCenter, and the API versions that it supports. Needs no client library, so it connects
while that is imported.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from urllib.parse import quote

import httpx2

from bfinfra.backends import background
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter.soap_transport import SoapTransport
from bfinfra.model import process
from bfinfra.model.site import VCenterSettings


def agent(site: str) -> str:
    """The user agent of a site's run, by which the next run recognises sessions that were left behind."""
    return f"bfinfra ({quote(site) or '-'}; {quote(process.me(), safe='/')})"


class Connector:
    """Connects at the first use, or at once with `connect`."""

    def __init__(self, settings: VCenterSettings, transport: Transport, site: str = "") -> None:
        self._settings = settings
        self._transport = transport
        self._site = site
        self._http: SoapTransport | None = None
        self._lock = threading.Lock()
        self._started: Future[httpx2.Response] | None = None

    def connect(self) -> None:
        """Connect now, and read the versions; an error reaches the first caller that needs them."""
        self._started = background.start(self._versions, "connect")

    def versions(self) -> httpx2.Response:
        """The server's list of versions. Raises RemoteError."""
        started, self._started = self._started, None
        return started.result() if started else self._versions()

    def _versions(self) -> httpx2.Response:
        return self.http().get("/sdk/vimServiceVersions.xml")

    def http(self) -> SoapTransport:
        """The HTTP of SOAP, which keeps the session's cookie."""
        with self._lock:
            if self._http is None:
                address = f"https://{self._settings.server}"
                self._http = SoapTransport(
                    self._transport.transport(address, self._settings.trust),
                    address,
                    agent(self._site),
                    self._transport.timeout,
                )
            return self._http

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            http, self._http = self._http, None
        if http is not None:
            http.close()

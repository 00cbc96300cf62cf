"""A server of the site, by the certificate that it shows."""

from __future__ import annotations

from dataclasses import field

from bfinfra.backends import certificate
from bfinfra.backends.certificate import Shown
from bfinfra.backends.transport import Transport
from bfinfra.model.records import dataclass
from bfinfra.model.trust import Trust


@dataclass(frozen=True)
class Server:
    """`what` it is in the site; `server` as host:port; `pem`: authorities that count besides those of
    `trust`.
    """

    what: str
    server: str
    trust: Trust
    pem: str = field(default="", repr=False)

    def look(self, seam: Transport) -> Shown:
        """The certificate that it shows. BfinfraError."""
        return certificate.look(seam, self.server, self.trust, what=self.what, extra_pem=self.pem)

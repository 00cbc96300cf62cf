"""Doors that are only known once vCenter was asked: its supervisors', before anybody logs in there, and those
of the clusters in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.backends import certificate
from bfinfra.backends.certificate import Shown
from bfinfra.backends.kubernetes.login import PORT
from bfinfra.doctor.blocked import Blocked
from bfinfra.model.errors import BfinfraError
from bfinfra.model.records import dataclass
from bfinfra.model.trust import Trust

if TYPE_CHECKING:
    from bfinfra.doctor.ground import CheckContext


@dataclass(frozen=True)
class Server:
    """`what` it is in the site; `server` as host:port; `pem`: authorities that count besides those of
    `trust`.
    """

    what: str
    server: str
    trust: Trust
    pem: str = field(default="", repr=False)

    def look(self, ground: CheckContext) -> Shown:
        """The certificate that it shows. BfinfraError."""
        return certificate.look(ground.seam, self.server, self.trust, what=self.what, extra_pem=self.pem)


def supervisors(ground: CheckContext) -> Iterator[Server]:
    """Where logins go, and the API, of each supervisor that the site's namespaces are on. Blocked where
    vCenter can't be entered.
    """
    clusters = dict.fromkeys(spec.cluster for spec in ground.of("supervisor_namespace").values())
    for name in clusters:
        supervisor = ground.catalog.supervisors.get(name)
        if supervisor is None or not supervisor.endpoint:
            continue
        vcenter = ground.entered()
        own = vcenter.settings.supervisor_trust
        host, port = certificate.address(supervisor.endpoint)
        for each in (port, PORT):
            server = f"[{host}]:{each}" if ":" in host else f"{host}:{each}"
            yield Server(
                f"supervisor on {name}", server, own or Trust(), "" if own else vcenter.authorities()
            )


def guests(ground: CheckContext) -> Iterator[Server]:
    """The API of each Tanzu cluster that runs, with the authority that its supervisor tells. What can't be
    entered is left out.
    """
    for key in ground.of("tanzu_cluster"):
        try:
            access = ground.cluster(key).access()
        except (Blocked, BfinfraError):
            continue
        yield Server(str(key), access.url.removeprefix("https://"), access.trust, access.extra_pem)

"""What the checks stand on: the site, the way to its servers, and the logins, each tried once."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.backends.certificate import address
from bfinfra.backends.kubernetes.login import PORT
from bfinfra.backends.vcenter.namespaces import Catalog, Namespace, Namespaces
from bfinfra.doctor.blocked import Blocked
from bfinfra.doctor.server import Server
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError, Malformed, Unreachable
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import Rights
from bfinfra.model.site import Site
from bfinfra.model.trust import Trust

if TYPE_CHECKING:
    from bfinfra.backends.ansible import LinuxHosts
    from bfinfra.backends.images import Images
    from bfinfra.backends.kubernetes import ClusterClient, Clusters
    from bfinfra.backends.transport import Transport
    from bfinfra.backends.vcenter import VCenter


@dataclass
class CheckContext:
    """`rights`: what the site needs; `state`: the folder of journal and lock; `now`: our own clock; `linux`:
    the way to Linux machines, made when first asked for.
    """

    site: Site
    rights: Rights
    seam: Transport
    clusters: Clusters
    images: Images
    vcenter: VCenter | None
    state: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    linux: Callable[[], LinuxHosts | None] = lambda: None
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def of(self, kind: str) -> dict[Key, Any]:
        """The specs of a kind."""
        return {key: spec for key, spec in self.site.resources.items() if key.kind == kind}

    def entered(self) -> VCenter:
        """VCenter, logged in. Blocked where there is none, or where the one attempt failed: a wrong password
        tried often locks an account.
        """
        if self.vcenter is None:
            raise Blocked("vcenter", "the site has none")
        if isinstance(self.login, BfinfraError):
            raise Blocked(self.vcenter.server, "vCenter can't be entered")
        return self.vcenter

    @property
    def login(self) -> BfinfraError | None:
        """What came of the one attempt to log in, by SOAP and by REST."""
        with self._lock:
            return self._login

    @functools.cached_property
    def _login(self) -> BfinfraError | None:
        try:
            if self.vcenter is not None:
                self.vcenter.session.content()
                Namespaces(self.vcenter).list()  # which every survey reads first
        except BfinfraError as error:
            return error
        return None

    @property
    def catalog(self) -> Catalog:
        """What supervisors offer. Blocked."""
        with self._lock:
            return self._catalog

    @functools.cached_property
    def _catalog(self) -> Catalog:
        return Namespaces(self.entered()).catalog()

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """The site's supervisor namespaces that stand. Blocked."""
        with self._lock:
            return self._namespaces

    @functools.cached_property
    def _namespaces(self) -> Mapping[str, Namespace]:
        named = {key.name for key in self.of("supervisor_namespace")}
        known = Namespaces(self.entered())
        return known.details(sorted(named & set(known.list())), self.catalog) if named else {}

    @property
    def distrusted(self) -> frozenset[str]:
        """The supervisors, by host, that show a certificate which is not trusted: nobody tries to log in
        there. Blocked.
        """
        with self._lock:
            return self._distrusted

    @functools.cached_property
    def _distrusted(self) -> frozenset[str]:
        found = set()
        for each in self.supervisors():
            with contextlib.suppress(Unreachable, Malformed):  # whoever goes there is told
                if each.look(self.seam).objection:
                    found.add(address(each.server)[0])
        return frozenset(found)

    def supervisor(self, endpoint: Endpoint, about: str) -> ClusterClient:
        """The API at a supervisor or through it. Blocked where its certificate is not trusted."""
        if address(endpoint.server)[0] in self.distrusted:
            raise Blocked(about, "its supervisor's certificate is not trusted")
        return self.clusters.at(endpoint)

    def cluster(self, key: Key) -> ClusterClient:
        """The API of a cluster of the site. Blocked where it isn't up yet, or its supervisor not trusted."""
        spec = self.site.resources[key]
        if key.kind == "kubernetes_cluster":
            return self.clusters.at(Endpoint(kubeconfig=spec.kubeconfig, context=spec.context))
        home = self.namespaces.get(key.name if key.kind == "supervisor_namespace" else spec.namespace)
        if home is None or home.status != "RUNNING" or not home.endpoint:
            raise Blocked(str(key), "it isn't there yet: apply makes it")
        guest = key.name if key.kind == "tanzu_cluster" else ""
        return self.supervisor(Endpoint(server=home.endpoint, namespace=home.name, guest=guest), str(key))

    def supervisors(self) -> Iterator[Server]:
        """Where logins go, and the API, of each supervisor that the site's namespaces are on. Blocked where
        vCenter can't be entered.
        """
        clusters = dict.fromkeys(spec.cluster for spec in self.of("supervisor_namespace").values())
        for name in clusters:
            supervisor = self.catalog.supervisors.get(name)
            if supervisor is None or not supervisor.endpoint:
                continue
            vcenter = self.entered()
            own = vcenter.settings.supervisor_trust
            host, port = address(supervisor.endpoint)
            for each in (port, PORT):
                server = f"[{host}]:{each}" if ":" in host else f"{host}:{each}"
                yield Server(
                    f"supervisor on {name}", server, own or Trust(), "" if own else vcenter.authorities()
                )

    def guests(self) -> Iterator[Server]:
        """The API of each Tanzu cluster that runs, with the authority that its supervisor tells. What
        can't be entered is left out.
        """
        for key in self.of("tanzu_cluster"):
            try:
                access = self.cluster(key).access()
            except (Blocked, BfinfraError):
                continue
            yield Server(str(key), access.url.removeprefix("https://"), access.trust, access.extra_pem)

    def inside(self) -> Iterator[Server]:
        """The servers that are only known once vCenter was asked: its supervisors', before anybody logs in
        there, and those of the clusters in them.
        """
        yield from self.supervisors()
        yield from self.guests()

"""Every Kubernetes API of a run, with one `ClusterClient` each."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

from bfinfra.backends.credentials import FINAL, Shut
from bfinfra.backends.survey_cache import SurveyCache
from bfinfra.formats.yaml import dumped
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import BfinfraError, Problem, Refusal, SecretMissing
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import small

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.access import Access
    from bfinfra.backends.kubernetes.cluster import ClusterClient, Selected
    from bfinfra.backends.transport import Transport


class Clusters:
    """`settings`: the account for supervisors and their guests; `roots()`: vCenter's own authorities as PEM,
    read when needed; `cache`: what a survey has read.
    """

    def __init__(
        self,
        transport: Transport,
        settings: VCenterSettings | None,
        roots: Callable[[], str] = lambda: "",
        cache: SurveyCache | None = None,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._roots = roots
        self.cache = cache or SurveyCache()
        self._made: dict[Endpoint, ClusterClient] = {}
        self._shut: dict[Endpoint, Shut] = {}
        self._lock = threading.Lock()

    def at(self, endpoint: Endpoint) -> ClusterClient:
        """The client for an endpoint; it connects at its first request."""
        from bfinfra.backends.kubernetes.cluster import ClusterClient

        with self._lock:
            if endpoint not in self._made:
                namespace = "" if endpoint.guest else endpoint.namespace
                self._made[endpoint] = ClusterClient(
                    self._transport, str(endpoint), lambda: self._enter(endpoint), namespace
                )
            return self._made[endpoint]

    @contextmanager
    def following_all(self) -> Iterator[None]:
        """Within the block, a list by labels counts among `selections` even without objects in it."""
        with self._lock:
            made = list(self._made.values())
        for client in made:
            client.selects_all = True
        try:
            yield
        finally:
            for client in made:
                client.selects_all = False

    def selections(self) -> list[tuple[ClusterClient, Selected]]:
        """The lists by labels that had objects in them, or that are followed anyway, with their clusters."""
        with self._lock:
            made = list(self._made.values())
        return [(client, each) for client in made for each in sorted(client.selected)]

    def kubeconfig(self, endpoint: Endpoint) -> str:
        """A kubeconfig with a token of a new login, its contexts named as `kubectl vsphere login` does. One
        that a machine gave is written anew: kubectl would run a program that it names.
        """
        if endpoint.kubeconfig is not None and not endpoint.kubeconfig.foreign:
            return self._reachable(endpoint.kubeconfig.reveal())
        access = self._enter(endpoint)
        account = "" if endpoint.kubeconfig is not None else self._username()
        return self._reachable(_kubeconfig(endpoint, access, account))

    def _reachable(self, kubeconfig: str) -> str:
        """The same with the addresses where the sandbox listens, for clients that don't know them."""
        if not self._transport.routed:
            return kubeconfig
        config = yaml.safe_load(kubeconfig)
        for each in config["clusters"]:
            server = urlsplit(each["cluster"]["server"])
            host, port = self._transport.where(server.hostname or "", server.port or 443)
            each["cluster"] |= {
                "server": f"https://{host}:{port}{server.path}",
                "tls-server-name": server.hostname,
            }
        return dumped(config)

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            made, self._made = self._made, {}
        for cluster in made.values():
            cluster.close()

    def _enter(self, endpoint: Endpoint) -> Access:
        from bfinfra.backends.kubernetes import kubeconfig, login

        if endpoint.kubeconfig is not None:
            return kubeconfig.read(endpoint.kubeconfig, endpoint.context)
        if self._settings is None:
            raise BfinfraError(
                Problem(
                    f"no account to log in to {endpoint} with",
                    next="write vcenter: with its server and account",
                )
            )
        with self._lock:
            shut = self._shut.setdefault(endpoint, Shut())
        if not self._transport.read_only:  # an apply waits for rights that it has just given
            return login.enter(self._transport, self._settings, self._roots, endpoint)
        shut.check(self._password)
        try:
            return login.enter(self._transport, self._settings, self._roots, endpoint)
        except FINAL as error:
            shut.by(error, self._password)
            raise

    def _password(self) -> Secret:
        from bfinfra.backends.credentials import credentials
        from bfinfra.backends.kubernetes import login

        if self._settings is None:
            raise SecretMissing(Problem("the site names no vCenter"))
        return credentials(self._settings, before=login.PASSWORD).password

    def _username(self) -> str:
        from bfinfra.backends.credentials import credentials
        from bfinfra.backends.kubernetes import login

        return credentials(self._settings, before=login.PASSWORD).username if self._settings else ""


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _kubeconfig(endpoint: Endpoint, access: Access, username: str) -> str:
    host = access.address.rpartition(":")[0] or access.address
    if access.trust.sha256:
        raise Refusal(
            f"no kubeconfig for {endpoint}",
            why="a kubeconfig can't carry a pinned fingerprint",
            next="give the supervisor's authority as supervisor_trust: {ca_file: …}",
        )
    pem = (
        small(access.trust.ca_file.path) if access.trust.ca_file else access.trust.ca_pem or access.extra_pem
    )
    authority = {"certificate-authority-data": _base64(pem)} if pem else {}
    name = endpoint.guest or endpoint.namespace or host
    user = f"wcp:{host}:{username}" if username else f"admin@{host}"
    proof = {"token": access.token}
    if access.identity is not None:
        certificate, key = map(_base64, access.identity)
        proof = {"client-certificate-data": certificate, "client-key-data": key}
    space = {"namespace": endpoint.namespace} if endpoint.namespace and not endpoint.guest else {}
    return dumped(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": host, "cluster": {"server": access.url, **authority}}],
            "contexts": [{"name": name, "context": {"cluster": host, "user": user, **space}}],
            "users": [{"name": user, "user": proof}],
        }
    )

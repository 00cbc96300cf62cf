"""The sides that a contract test runs on: the sandbox, a live peer, a peer's cassette. Same calls, same
assertions.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import yaml
from contract.cassette import Tape
from contract.scrub import HIDDEN
from peers.found import USER, Peers

from bfinfra.backends.kubernetes import ClusterClient, Clusters
from bfinfra.backends.transport import Middleware, Route, Transport
from bfinfra.backends.vcenter import VCenter
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources
from bfinfra.model.trust import Trust
from bfinfra.sandbox import Running

T = TypeVar("T")
VCSIM, KUBE = "vcsim", "kube-apiserver"
READER = "reader@vsphere.local"
COMPACTED = 20
"""The first revisions of an etcd: of its API server's own start."""
FAULTS = {"NotAuthenticated": 1, "NoPermission": 2, "InvalidArgument": 3, "ManagedObjectNotFound": 5}
"""The faults of vcsim's injector whose answers can be parsed by pyVmomi, by their number there."""


@dataclass
class Side:
    """`peer`: sandbox, vcsim or kube-apiserver; `mode`: sandbox, live or cassette. Every transport made here is
    counted and closed.
    """

    peer: str
    mode: str
    route: Route | None = None
    middleware: tuple[Middleware, ...] = ()
    transports: list[Transport] = field(default_factory=list)
    closing: list[Callable[[], None]] = field(default_factory=list)

    def transport(self) -> Transport:
        made = Transport(route=self.route, middleware=self.middleware)
        self.transports.append(made)
        return made

    def until(self, test: Callable[[], T]) -> T:
        """Look until it is true, and what it was then. A cassette has as many looks as it took."""
        end = time.monotonic() + 60
        while not (found := test()):
            assert time.monotonic() < end, "it doesn't come"
            time.sleep(0.05 if self.mode == "live" else 0)
        return found

    def requests(self) -> set[str]:
        """What was asked, by name, without the names of objects."""
        return {plain(name) for transport in self.transports for name in transport.tally.names}

    def close(self) -> None:
        for each in reversed(self.closing):
            each()
        for transport in self.transports:
            transport.close()


@dataclass
class VCenterSide(Side):
    """A vCenter: `open` logs in; the rest meddles with the server behind the client's back."""

    server: str = ""
    trust: Trust = field(default_factory=Trust)
    passwords: dict[str, str] = field(default_factory=dict, repr=False)
    control: Callable[..., None] = lambda *_: None
    world: Running | None = None
    host, cluster, datastore, network = "DC0_C0_H0", "DC0_C0", "LocalDS_0", "VM Network"
    supervisor = "WCP-compute"

    def open(self, user: str = USER, password: str = "", site: str = "", **settings: Any) -> VCenter:
        env = {"GOVC_USERNAME": user, "GOVC_PASSWORD": password or self.passwords.get(user, HIDDEN)}
        made = VCenter(
            VCenterSettings(server=self.server, trust=self.trust, **settings), self.transport(), env, site
        )
        self.closing.append(made.close)
        return made

    def fault(self, method: str, name: str) -> None:
        """The next call of a SOAP method fails with this fault."""
        if self.mode == "sandbox":
            assert self.world
            self.world.faults({"api": "vcenter", "method": method, "nth": 1, "do": {"soap": name}})
        self.control("fault", {"Method": method, "Kind": FAULTS.get(name), "MaxCount": 1, "Message": name})

    def unavailable(self) -> None:
        """The next SOAP call is answered 503."""
        if self.mode == "sandbox":
            assert self.world
            self.world.faults({"api": "vcenter", "nth": 1, "do": {"status": 503}})
        self.control("status?code=503", {})

    def fail_task(self, method: str, name: str) -> None:
        """The task that the next such call starts ends with this fault; only the sandbox can."""
        assert self.world
        self.world.faults({"api": "vcenter", "method": method, "nth": 1, "do": {"task": name}})

    def hidden(self, value: str) -> str:
        """What a secret that was sent reads back as: cassettes hold no values."""
        return HIDDEN if self.mode == "cassette" else value


@dataclass
class KubernetesSide(Side):
    """A Kubernetes API; `configs`: kubeconfigs of its administrator and of somebody without rights; `own`: a
    suffix for names.
    """

    configs: dict[str, Any] = field(default_factory=dict, repr=False)
    own: str = ""
    world: Running | None = None
    etcd: str = ""
    _aging: bool = False

    def open(self, who: str = "admin", **user: Any) -> ClusterClient:
        config = json.loads(json.dumps(self.configs[who]))
        if user:
            config["users"][0]["user"] = user
        clusters = Clusters(self.transport(), None)
        self.closing.append(clusters.close)
        return clusters.at(Endpoint(kubeconfig=Secret("env", "K", Sources(env={"K": json.dumps(config)}))))

    def forget_pages(self) -> None:
        """From now on the second page of each list is too old. etcd forgets its first revisions; nobody else
        misses them.
        """
        if self.world:
            self.world.faults(
                {"api": "kubernetes", "method": "GET *", "nth": 2, "times": 99, "do": {"status": 410}}
            )
        if self.etcd:
            body = json.dumps({"revision": str(COMPACTED)}).encode()
            with contextlib.suppress(urllib.error.HTTPError):  # it has forgotten more already
                urllib.request.urlopen(f"{self.etcd}/v3/kv/compaction", body, timeout=10).close()
            self._aging = True

    def remember_pages(self) -> None:
        """As before."""
        self._aging = False
        if self.world:
            self.world.clear_faults()

    def aged(self, inner: httpx2.BaseTransport) -> httpx2.BaseTransport:
        """A filling: while pages are forgotten, a list goes on from etcd's first revisions."""
        return _Aged(inner, self)


class _Aged(httpx2.BaseTransport):
    def __init__(self, inner: httpx2.BaseTransport, side: KubernetesSide) -> None:
        self._inner, self._side = inner, side

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        token = request.url.params.get("continue")
        if token and self._side._aging:
            old = request.url.copy_set_param("continue", _old(token))
            request = httpx2.Request(
                request.method, old, headers=request.headers, extensions=request.extensions
            )  # a cassette keeps the one that was sent
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def _old(token: str) -> str:
    """The same place in the list as of etcd's first revisions. Source: k8s.io/apiserver,
    pkg/storage/continue.go.
    """
    place = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return (
        base64.urlsafe_b64encode(json.dumps({**place, "rv": COMPACTED // 4}, separators=(",", ":")).encode())
        .decode()
        .rstrip("=")
    )


def sandbox_vcenter(world: Running) -> VCenterSide:
    passwords = {USER: world.env["VCENTER_PASSWORD"], READER: world.env["READER_PASSWORD"]}
    return VCenterSide(
        "sandbox",
        "sandbox",
        world.lookup,
        server="vc.contract.test",
        trust=Trust(ca_pem=world.ca_file.read_text()),
        passwords=passwords,
        world=world,
    )


def sandbox_kubernetes(world: Running) -> KubernetesSide:
    admin = yaml.safe_load((world.files / "other.kubeconfig").read_text())
    return KubernetesSide("sandbox", "sandbox", world.lookup, configs={"admin": admin}, world=world)


def live_vcsim(peers: Peers) -> VCenterSide:
    host, _, port = peers.vcsim.rpartition(":")
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))).hexdigest()

    def control(path: str, body: Any) -> None:
        request = urllib.request.Request(
            f"https://{peers.vcsim}/_ctl/{path}",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        free = ssl.create_default_context()
        free.check_hostname, free.verify_mode = False, ssl.CERT_NONE
        urllib.request.build_opener(urllib.request.HTTPSHandler(context=free)).open(
            request, timeout=10
        ).close()

    return VCenterSide(
        VCSIM,
        "live",
        server=peers.vcsim,
        trust=Trust(sha256=pin),
        passwords={USER: peers.password},
        control=control,
    )


def live_kubernetes(peers: Peers, own: str) -> KubernetesSide:
    configs = {
        who: yaml.safe_load((peers.kubeconfig.parent / f"{file}.kubeconfig").read_text())
        for who, file in {"admin": "token", "nobody": "nobody"}.items()
    }
    made = KubernetesSide(
        KUBE,
        "live",
        configs=configs,
        own=own,
        etcd=(peers.kubeconfig.parent / "etcd.url").read_text().strip(),
    )
    made.middleware = (made.aged,)
    return made


def taped_vcsim(tape: Tape) -> VCenterSide:
    return VCenterSide(
        VCSIM, "cassette", middleware=(tape.filling,), server="vcsim.test", trust=Trust(sha256="0" * 64)
    )


def taped_kubernetes(tape: Tape) -> KubernetesSide:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://kubernetes.test:6443"}}],
        "users": [{"name": "u", "user": {"token": HIDDEN}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    return KubernetesSide(
        KUBE,
        "cassette",
        middleware=(tape.filling,),
        configs=dict.fromkeys(("admin", "nobody"), config),
        own=tape.note("own"),
    )


def api_address(config: dict[str, Any]) -> str:
    """host:port of a kubeconfig's cluster."""
    return str(config["clusters"][0]["cluster"]["server"]).removeprefix("https://").rstrip("/")


PLAIN = (
    (r"/nfc/.*", "/nfc/{lease}/{file}"),
    (r"/cls/data/.*", "/cls/data/{session}/{file}"),
    (r"((?:ovf/library-item|vm-template/library-items))/.+", r"\1/{id}"),
    (r"(content/library/item/update-session)/[^/]+/file$", r"\1/{id}/file"),
    (r"(content/library/item/update-session)/[^/]+$", r"\1/{id}"),
    (r"(content/library/item)/(?!update-session)[^/]+/file$", r"\1/{id}/file"),
    (r"(content/library/item)/(?!update-session)[^/]+$", r"\1/{id}"),
    (
        r"(namespaces/instances|virtual-machine-classes|namespace-management/clusters|content/(?:local-|subscribed-)?library(?!/item))/.+",
        r"\1/{id}",
    ),
    (r"(registries/harbor)/[^/]+(/projects)?$", r"\1/{id}\2"),
    (r"(esx/settings/clusters)/[^/]+(/software/drafts)/[^/]+(.*)", r"\1/{id}\2/{id}\3"),
    (
        r"(esx/settings/clusters|depots/offline|cis/tasks|management/supervisors(?!/summaries)|zones/cluster)/[^/]+",
        r"\1/{id}",
    ),
    (r"(tagging/(?:category|tag(?:-association)?))/.+", r"\1/{id}"),
    (r"^(\w+) /apis?/(?:v1|[\w.-]+/v\w+)$", r"\1 discovery of a group"),
    (r"^(\w+) /apis/[\w.-]+$", r"\1 versions of a group"),
    (r"namespaces/[^/]+/pods/[^/]+/(log|eviction)", r"pods/{name}/\1"),
    (r"/apis?/(?:v1|[\w.-]+/v\w+)/namespaces/[^/]+/(\w+)/[^/]+/status$", r"\1/{name}/status"),
    (r"/apis?/(?:v1|[\w.-]+/v\w+)/namespaces/[^/]+/(\w+)/[^/]+$", r"\1/{name}"),
    (r"/apis?/(?:v1|[\w.-]+/v\w+)/namespaces/[^/]+/(\w+)$", r"\1"),
    (r"/apis?/(?:v1|[\w.-]+/v\w+)/(\w+)/[^/]+$", r"\1/{name}"),
    (r"/apis?/(?:v1|[\w.-]+/v\w+)/(\w+)$", r"\1"),
)


def plain(name: str) -> str:
    """`GET /api/v1/namespaces/x/configmaps/y` → `GET configmaps/{name}`."""
    for pattern, instead in PLAIN:
        found = re.sub(pattern, instead, name)
        if found != name:
            return found
    return name


@contextmanager
def no_sockets(monkeypatch: Any) -> Iterator[None]:
    """Not even loopback."""
    import socket  # noqa: PLC0415 - patched here only

    def refuse(*_: Any) -> None:
        raise AssertionError("a cassette is played: nothing may connect")

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "create_connection", refuse)
        yield


CASSETTES = Path(__file__).resolve().parents[2] / "cassettes"

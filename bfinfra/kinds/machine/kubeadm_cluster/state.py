"""How a cluster stands: what its machines say, and what its API says of its nodes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.linux import OnHosts, first_word
from bfinfra.model.awaited import Away
from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import LinuxMachine

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

RECORD = "/var/lib/bfinfra/kubeadm_cluster"
LOOK = {
    "record": ("cat", RECORD),
    "package": ("cat", f"{RECORD}.package"),
    "program": ("sha256sum", "/usr/bin/kubeadm"),
    "kubelet": ("cat", "/etc/kubernetes/kubelet.conf"),
    "authority": ("cat", "/etc/kubernetes/pki/ca.crt"),
    "swaps": ("cat", "/proc/swaps"),
    "fstab": ("cat", "/etc/fstab"),
    "name": ("uname", "-n"),
    "modules": ("cat", "/etc/modules-load.d/bfinfra-kubernetes.conf"),
    "sysctl": ("cat", "/etc/sysctl.d/99-bfinfra-kubernetes.conf"),
}
ADMIN = {"admin": ("cat", "/etc/kubernetes/admin.conf")}
"""Asked of machines that are a control plane by the file, or may be one of ours that left it. Never shown: it
is a secret.
"""
AUTHORITY = re.compile(r"certificate-authority-data: *([A-Za-z0-9+/=]+)")
OFF = "#bfinfra: "
"""What stands before a line of /etc/fstab that we switched off."""
SWAP = re.compile(r"^(?!#)\S+\s+\S+\s+swap\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. `name`: of its node; `role`: as recorded, control_plane or worker; `done`: its control
    plane was initialised to the end.

    `joined`: it has a kubelet.conf; `authority`: its cluster's CA in PEM, "" without one; `left`: kubeadm
    left something there.
    """

    mark: Mark | None
    name: str = ""
    role: str = ""
    done: bool = False
    joined: bool = False
    authority: str = ""
    admin: Secret | None = None
    package: str = ""
    program: bool = False
    swap: bool = False
    fstab: str = ""
    modules: tuple[str, ...] = ()
    sysctl: str = ""
    noted: Mapping[str, str] = field(default_factory=dict)

    @property
    def there(self) -> bool:
        """Whether it is a node, ours or another's."""
        return bool(self.mark or self.joined)

    @property
    def left(self) -> bool:
        """Something of kubeadm's stands there."""
        return self.joined or bool(self.authority)

    @property
    def initialised(self) -> bool:
        """A control plane stands there, whole."""
        return self.admin is not None and self.joined and (self.done or self.mark is None)


@dataclass(frozen=True, kw_only=True)
class State(OnHosts[Node]):
    """How it stands on machines. `endpoint`: once its control plane stands; `nodes`: name → ready or not, as
    its API says, None where it doesn't answer (`silent`: why); `cni`: digest of the manifest applied;
    `token`: a run that died while machines joined left its token.
    """

    control_plane: str = ""
    endpoint: Endpoint | None = None
    url: str = ""
    version: str = ""
    nodes: Mapping[str, bool] | None = None
    silent: str = ""
    cni: str = ""
    token: bool = False

    def answers_at(self) -> str:
        """Its API."""
        return self.url.removeprefix("https://").partition("/")[0]


@dataclass(frozen=True)
class KubeadmFacts:
    """`machines`: all that answered, `found`: how each stands; by resource: `packages` and `cni`: digests of
    the files, "" where they can't be read.

    `away`: the first of its packages that isn't there yet; `cni_away`: its manifest, where that isn't.
    """

    machines: Mapping[str, LinuxMachine]
    found: Mapping[str, Node]
    packages: Mapping[str, str]
    cni: Mapping[str, str | Unknown]
    away: Mapping[str, Away] = field(default_factory=dict)
    cni_away: Mapping[str, Away] = field(default_factory=dict)


def read(host: str, answers: Answers) -> Node:
    """From what a machine said."""
    record = answers["record"].text if answers["record"].ok else ""
    noted = dict(
        line.split("=", 1) for line in record.splitlines() if re.match(r"(role|init|form|files)=", line)
    )
    stamped = answers["package"].text.split() if answers["package"].ok else []
    program = first_word(answers["program"])
    kubelet = answers["kubelet"].text if answers["kubelet"].ok else ""
    swaps = answers["swaps"].text.splitlines()[1:] if answers["swaps"].ok else []
    return Node(
        mark=Mark.decode(record),
        name=first_word(answers["name"]).lower(),
        role=noted.get("role", ""),
        done=noted.get("init") == "done",
        joined=bool(kubelet),
        authority=_authority(kubelet)
        or (answers["authority"].text.strip() if answers["authority"].ok else ""),
        admin=_admin(host, answers),
        package=stamped[0] if len(stamped) == 2 and stamped[1] == program else "",
        program=bool(program),
        swap=any(line.strip() for line in swaps),
        fstab=answers["fstab"].text if answers["fstab"].ok else "",
        modules=tuple(answers["modules"].text.split()) if answers["modules"].ok else (),
        sysctl=answers["sysctl"].text if answers["sysctl"].ok else "",
        noted=noted,
    )


def token_id(site: str, name: str) -> str:
    """Of the bootstrap token with which machines join this cluster: the same in each run, so that the next
    one finds what a killed one left.
    """
    return hashlib.sha256(f"{site}/{name}".encode()).hexdigest()[:6]


def without_swap(fstab: str) -> str:
    """Its lines of swap made comments of ours."""
    return SWAP.sub(lambda found: OFF + found[0], fstab)


def with_swap(fstab: str) -> str:
    """As it was before."""
    return re.sub(f"^{OFF}", "", fstab, flags=re.MULTILINE)


def _authority(kubelet: str) -> str:
    found = AUTHORITY.search(kubelet)
    try:
        return base64.b64decode(found[1], validate=True).decode().strip() if found else ""
    except (binascii.Error, ValueError):
        return ""


def _admin(host: str, answers: Answers) -> Secret | None:
    """The administrator's kubeconfig as a secret that only this run has: under a name that says which it is,
    another one for another life of the cluster.
    """
    found = answers.get("admin")
    if found is None or not found.ok or ("kind: Config" not in found.text and '"Config"' not in found.text):
        return None
    name = f"admin.conf of {host}, {hashlib.sha256(found.text.encode()).hexdigest()[:12]}"
    return Secret("env", name, Sources(env={name: found.text}))

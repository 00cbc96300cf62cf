"""The live state of a cluster: its machines, and the nodes that its API reports."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from bfinfra.kinds.linux import first_word
from bfinfra.kinds.machine.base import OnHosts, SoftwareFacts, read_record, record_commands, text_of
from bfinfra.model.awaited import Away
from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.resource import Spec
from bfinfra.model.secret import Secret

if TYPE_CHECKING:
    from bfinfra.kinds.linux import Answers

NAME = "kubeadm_cluster"
LOOK = {
    **record_commands(NAME, "/usr/bin/kubeadm"),
    "kubelet": ("cat", "/etc/kubernetes/kubelet.conf"),
    "authority": ("cat", "/etc/kubernetes/pki/ca.crt"),
    "swaps": ("cat", "/proc/swaps"),
    "fstab": ("cat", "/etc/fstab"),
    "name": ("uname", "-n"),
    "modules": ("cat", "/etc/modules-load.d/bfinfra-kubernetes.conf"),
    "sysctl": ("cat", "/etc/sysctl.d/99-bfinfra-kubernetes.conf"),
}
ADMIN = {"admin": ("cat", "/etc/kubernetes/admin.conf")}
"""The command that reads the administrator's kubeconfig. It is run on machines that are a control plane in
the file, or may have been one. Its output is secret and never shown.
"""
AUTHORITY = re.compile(r"certificate-authority-data: *([A-Za-z0-9+/=]+)")
OFF = "#bfinfra: "
"""The prefix of a line of /etc/fstab that bfinfra switched off."""
SWAP = re.compile(r"^(?!#)\S+\s+\S+\s+swap\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. `name`: of its node; `role`: as recorded, control_plane or worker; `done`: whether its
    control plane was fully initialised. `joined`: whether it has a kubelet.conf; `authority`: its cluster's
    CA in PEM, "" without one; `left`: whether kubeadm left files there.
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
        """True if it is a node of any cluster."""
        return bool(self.mark or self.joined)

    @property
    def left(self) -> bool:
        """True if it has files of kubeadm."""
        return self.joined or bool(self.authority)

    @property
    def initialised(self) -> bool:
        """True if it has a fully initialised control plane."""
        return self.admin is not None and self.joined and (self.done or self.mark is None)


@dataclass(frozen=True, kw_only=True)
class State(OnHosts[Node]):
    """The cluster as its machines and its API report it. `endpoint`: set once its control plane runs.
    `nodes`: name → whether it is ready, from its API, None if that doesn't answer (`silent`: why). `cni`:
    digest of the applied manifest. `token`: whether a killed run left its bootstrap token.
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

    def out_of_service(self, spec: Spec | None) -> str:
        """Return which of its nodes are not ready, or that its API doesn't answer."""
        if self.silent:
            return f"does not answer: {self.silent}"
        names = ", ".join(name for name, ready in (self.nodes or {}).items() if not ready)
        return f"has nodes that are not ready: {names}" if names else ""


@dataclass(frozen=True)
class KubeadmFacts(SoftwareFacts[Node]):
    """In addition, by resource: `cni`: digest of the manifest, "" if it can't be read; `cni_away`: the
    manifest, if it doesn't exist yet.
    """

    cni: Mapping[str, str | Unknown] = field(default_factory=dict)
    cni_away: Mapping[str, Away] = field(default_factory=dict)


def read(host: str, answers: Answers) -> Node:
    """From a machine's answers."""
    record = read_record(answers, "role", "init", "form", "files")
    kubelet = text_of(answers, "kubelet") or ""
    swaps = (text_of(answers, "swaps") or "").splitlines()[1:]
    return Node(
        mark=record.mark,
        name=first_word(answers["name"]).lower(),
        role=record.noted.get("role", ""),
        done=record.noted.get("init") == "done",
        joined=bool(kubelet),
        authority=_authority(kubelet) or (text_of(answers, "authority") or "").strip(),
        admin=_admin(host, answers),
        package=record.package,
        program=record.program,
        swap=any(line.strip() for line in swaps),
        fstab=text_of(answers, "fstab") or "",
        modules=tuple((text_of(answers, "modules") or "").split()),
        sysctl=text_of(answers, "sysctl") or "",
        noted=record.noted,
    )


def token_id(site: str, name: str) -> str:
    """The id of the bootstrap token with which machines join this cluster. It is the same in each run, so
    that a run finds the token of a killed one.
    """
    return hashlib.sha256(f"{site}/{name}".encode()).hexdigest()[:6]


def without_swap(fstab: str) -> str:
    """The text with its lines of swap commented out."""
    return SWAP.sub(lambda found: OFF + found[0], fstab)


def with_swap(fstab: str) -> str:
    """The text with those lines restored."""
    return re.sub(f"^{OFF}", "", fstab, flags=re.MULTILINE)


def _authority(kubelet: str) -> str:
    found = AUTHORITY.search(kubelet)
    try:
        return base64.b64decode(found[1], validate=True).decode().strip() if found else ""
    except (binascii.Error, ValueError):
        return ""


def _admin(host: str, answers: Answers) -> Secret | None:
    """The administrator's kubeconfig as a secret of this run, named by its digest, so that a new cluster on
    the same machines has a new name.
    """
    found = answers.get("admin")
    if found is None or not found.ok or ("kind: Config" not in found.text and '"Config"' not in found.text):
        return None
    name = f"admin.conf of {host}, {hashlib.sha256(found.text.encode()).hexdigest()[:12]}"
    return Secret.of_machine(name, found.text)

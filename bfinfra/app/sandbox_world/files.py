"""The files and secrets that a site names: stand-ins that the sandbox makes."""

from __future__ import annotations

import re

from bfinfra.app.sandbox_world.draft import Draft, Entry
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile, LocalOutput
from bfinfra.spec.leads import walk

STAND_IN = "a stand-in\n"
LICENSE = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJzYW5kYm94In0.c2FuZGJveA\n"
"""A client configuration token of the sandbox's licence server, signed by nobody."""
VERSION = re.compile(r"[-_]v?(\d+\.\d+[\w.~+-]*?)(?:_[a-z0-9]+)?\.[a-z]+$")
PROGRAMS = {
    "bitfusion_client": ("bitfusion",),
    "flexdirect_host": ("flexdirect",),
    "nvidia_container_toolkit": ("nvidia-container-runtime",),
    "kubeadm_cluster": ("kubeadm", "kubectl"),
}
BY_FIELD = {"ca_file": "ca", "authority": "ca", "known_hosts": "known_hosts"}
"""Makers of the files that fields of these names refer to."""
NETWORK = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pod-network, namespace: kube-system}\n"
    "data: {network: 10.244.0.0/16}\n"
)


def add(draft: Draft) -> None:
    """Add variables and files to the world; files that a site's author writes stay those beside the site."""
    for (key, field), found in walk(draft.site):
        where = f"{key}: {field}" if key else field
        if isinstance(found, Secret):
            _secret(draft, key, field, where, found)
        elif not isinstance(found, LocalOutput):
            made = _file(draft, key, field, found)
            if made:
                draft.part("files", found.text.lstrip("/"), made)
            elif not found.path.exists():
                draft.left_out[where] = f"there is no {found.text}: write it"


def _secret(draft: Draft, key: Key | None, field: str, where: str, found: Secret) -> None:
    target = found.target if isinstance(found.target, str) else ""
    is_file = field == "key" or (key is not None and key.kind == "kubernetes_cluster")
    if found.way == "env" and not is_file:
        draft.env.setdefault(target, {"generate": "password"})
    elif found.way == "file" and key and key.kind == "kubernetes_cluster":
        name = draft.site.resources[key].context or key.name
        draft.part("files", target.lstrip("/"), {"make": "kubeconfig", "options": {"cluster": name}})
    elif found.way == "file" and field == "key":
        draft.part("files", target.lstrip("/"), {"make": "ssh_key"})
    elif found.way == "file" and key and key.kind == "service_vm":
        draft.part("files", target.lstrip("/"), {"make": "text", "options": {"text": STAND_IN}})
    elif found.way == "file" and key and key.kind == "gpu_operator":
        draft.part("files", target.lstrip("/"), {"make": "text", "options": {"text": LICENSE}})
    elif where not in draft.left_out:
        draft.left_out[where] = f"the sandbox can't give {found}: name a {'file' if is_file else 'variable'}"


def _file(draft: Draft, key: Key | None, field: str, found: LocalFile) -> Entry | None:
    """Return how a stand-in for a file is made; None for files that have none."""
    kind, last = (key.kind if key else ""), field.rpartition(".")[2]
    made: Entry | None = None
    if maker := BY_FIELD.get(last):
        made = {"make": maker}
    elif kind == "bitfusion_server" and found.text.endswith(".ova"):
        made = {"make": "ova", "options": {"version": _version(found.text, "3.0.0-11"), "disk": "256KiB"}}
    elif field == "source.tar":
        made = {"make": "token", "options": {"servers": _servers(draft, key)}}
    elif found.text.endswith(".deb"):
        made = {"make": "deb", "options": _package(found.text, PROGRAMS.get(kind, ()))}
    elif kind == "loaded_image" and key and (image := draft.site.resources[key].image):
        made = {"make": "image", "options": {"image": image}}
    elif field == "cni" and not found.path.exists():
        made = {"make": "text", "options": {"text": NETWORK}}
    return made


def _servers(draft: Draft, token: Key | None) -> list[str]:
    """The addresses in a token: of its servers."""
    named = draft.site.resources[token].servers if token else ()
    found = [
        f"{network.address.partition('/')[0]}:{spec.port}"
        for key, spec in draft.of("bitfusion_server")
        for network in list(spec.networks.values())[:1]
        if network.address and (not named or key.name in named)
    ]
    return found or ["10.214.0.5:56001"]


def _package(text: str, programs: tuple[str, ...]) -> Entry:
    name = text.rpartition("/")[2].removesuffix(".deb").partition("_")[0]
    options: Entry = {
        "package": name,
        "version": _version(text, "1.0"),
        "programs": dict.fromkeys(programs, STAND_IN),
    }
    if "kubeadm" in programs:
        options["units"] = {"kubelet.service": STAND_IN}
    return options


def _version(text: str, otherwise: str) -> str:
    found = VERSION.search(text)
    return found[1] if found else otherwise

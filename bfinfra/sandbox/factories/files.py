"""Chooses the factory for each file of a world."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from bfinfra.sandbox.factories.deb import make_deb
from bfinfra.sandbox.factories.image import make_image
from bfinfra.sandbox.factories.kubeconfig import make_kubeconfig
from bfinfra.sandbox.factories.ova import make_ova
from bfinfra.sandbox.factories.token import make_token
from bfinfra.sandbox.reading import BadWorld, Bytes, read
from bfinfra.sandbox.world_outside import File, KubernetesCluster

Maker = Callable[..., None]


def make_files(
    files: Mapping[str, File],
    folder: Path,
    ca_pem: str,
    clusters: Mapping[str, KubernetesCluster] = MappingProxyType({}),
    ssh: Callable[[], tuple[str, str]] = lambda: ("", ""),
) -> None:
    """Make every file under the folder; `clusters`: those that a kubeconfig may lead to; `ssh`: key and
    known_hosts of the Linux machines. BadWorld names a file whose path, maker or options are wrong.
    """

    def make_ca(path: Path) -> None:
        make_text(path, text=ca_pem)

    def make_access(path: Path, *, cluster: str) -> None:
        if cluster not in clusters:
            raise ValueError(f"kubernetes_clusters has no {cluster}; it has {', '.join(clusters) or 'none'}")
        found = clusters[cluster]
        make_kubeconfig(path, name=cluster, address=found.address, token=found.token, ca_pem=ca_pem)

    def make_ssh_key(path: Path) -> None:
        make_text(path, text=ssh()[0])
        path.chmod(0o600)

    def make_known_hosts(path: Path) -> None:
        make_text(path, text=ssh()[1])

    recipes: dict[str, Maker] = {
        "ova": make_ova,
        "token": make_token,
        "deb": make_deb,
        "text": make_text,
        "ca": make_ca,
        "kubeconfig": make_access,
        "ssh_key": make_ssh_key,
        "known_hosts": make_known_hosts,
        "image": make_image,
    }
    for name, file in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise BadWorld(f"files.{name}: the path leaves the folder of files")
        _make(name, file, recipes, folder / path)


def make_text(path: Path, *, text: str) -> None:
    """A file with this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _make(name: str, file: File, recipes: Mapping[str, Maker], path: Path) -> None:
    maker = recipes.get(file.make)
    if maker is None:
        raise BadWorld(f"files.{name}: make {file.make!r} is none of {', '.join(recipes)}")
    options: dict[str, Any] = dict(file.options)
    if "disk" in options:
        options["disk"] = read(Bytes, options["disk"], f"files.{name}.options.disk")
    try:
        inspect.signature(maker).bind(path, **options)
        maker(path, **options)
    except (TypeError, ValueError) as error:
        raise BadWorld(f"files.{name}: {error}") from None

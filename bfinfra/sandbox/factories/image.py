"""Archives of container images, as `docker save` writes them: one small layer."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from bfinfra.sandbox.factories.ova import member


def make_image(path: Path, *, image: str, text: str = "a stand-in\n") -> None:
    """Write an archive that `docker load` reads; the same arguments give the same bytes. `text`: what its
    only file holds.
    """
    layer = _tar({"README": text.encode()})
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [image], "Layers": [f"{digest}/layer.tar"]}]).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_tar({f"{digest}/layer.tar": layer, name: config, "manifest.json": manifest}))


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            tar.addfile(member(name, len(data)), io.BytesIO(data))
    return out.getvalue()

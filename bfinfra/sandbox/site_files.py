"""The files that sites name: made from the world file, and restored by a reset."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from bfinfra.sandbox import state as folder
from bfinfra.sandbox.factories.files import make_files
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.world import World


class SiteFiles:
    """The files of a world, in the state folder."""

    def __init__(self, world: World, state: Path, pki: Pki) -> None:
        self._world, self._pki = world, pki
        self.folder, self._note = state / "files", state / "files.made"

    def make(self) -> None:
        """Make them, unless that was done for the same world before."""
        if self._made().get("world") != self._digest():
            self._make()

    def reset(self) -> None:
        """Restore the beginning: delete what was added; if one was changed or deleted, make all again."""
        if self._made() != self._record():
            shutil.rmtree(self.folder, ignore_errors=True)
            self._make()
        for path in self._others():
            if path.is_symlink() or not path.is_dir():
                path.unlink(missing_ok=True)
            else:
                shutil.rmtree(path, ignore_errors=True)

    def _make(self) -> None:
        make_files(
            self._world.files, self.folder, self._pki.ca_pem, self._world.kubernetes_clusters, self._ssh
        )
        folder.write(self._note, self._record())

    def _record(self) -> dict[str, object]:
        """Record the world of the files, and what shows that one was written since."""
        return {
            "world": self._digest(),
            "files": {name: _stamp(self.folder / name) for name in self._world.files},
        }

    def _made(self) -> dict[str, object]:
        """The record as it was when they were made; empty where none were."""
        try:
            found = folder.read(self._note)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _others(self) -> list[Path]:
        """Files, links and folders that are not in the world file."""
        named = [self.folder / name for name in self._world.files]
        own = {*named, *(parent for path in named for parent in path.parents)}
        return sorted(path for path in self.folder.rglob("*") if path not in own)

    def _digest(self) -> str:
        clusters = {
            name: (each.address, each.token) for name, each in self._world.kubernetes_clusters.items()
        }
        return hashlib.sha256(f"{self._world.files} {clusters} {self._pki.ca_pem}".encode()).hexdigest()

    def _ssh(self) -> tuple[str, str]:
        """The private key for the logins of the world's Linux machines, and their known_hosts."""
        hosts = (
            (
                f"{each.address if each.port == 22 else f'[{each.address}]:{each.port}'} "
                f"{self._pki.ssh_public(f'host-{name}')}\n"
            )
            for name, each in self._world.linux_machines.items()
        )
        return self._pki.ssh_key("client"), "".join(hosts)


def _stamp(path: Path) -> list[int]:
    """Mode, size, time and inode of a file; empty where there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return []
    return [found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino]

"""The sandbox's process: its state read, its servers started, endpoints.json written, and all of it saved at
the end.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bfinfra.sandbox import handout
from bfinfra.sandbox import state as folder
from bfinfra.sandbox.control import control_handler
from bfinfra.sandbox.parts import Parts
from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.process import FORMAT
from bfinfra.sandbox.server import open_plain
from bfinfra.sandbox.site_files import SiteFiles
from bfinfra.sandbox.state import Busy, Unreadable
from bfinfra.sandbox.world_file import load, placed

__all__ = ["Busy", "Unreadable", "serve"]
ENDING = {signal.SIGTERM, signal.SIGINT}


def serve(world_file: Path, state: Path, pace: float | None) -> None:
    """Serve until SIGTERM or SIGINT. Raises BadWorld, Busy, OSError before any server listens."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # before any thread is there: they inherit it
    with folder.hold(state):
        world = load(world_file, Passwords.kept_in(state))
        pki = Pki(state / "pki")
        files = SiteFiles(world, state, pki)
        with placed(world_file):
            files.make()
        parts = Parts(world, pki, world.pace if pace is None else pace)
        parts.reset_files = files.reset
        saved = folder.read(state / "state.json")
        parts.open()
        if saved is not None:
            _restore(parts, saved, state)
        endpoints = _Endpoints(state, pki, parts, open_plain(control_handler(parts)))
        endpoints.follow()
        signal.sigwait(ENDING)
        folder.write(state / "state.json", {"format_version": folder.FORMAT, **parts.save()})
        endpoints.remove()


def _restore(parts: Parts, saved: Any, state: Path) -> None:
    """Restore a saved state. Raises Unreadable, with what to do."""
    if saved.get("format_version") != folder.FORMAT:
        raise Unreadable(f"the state in {state} is of another version: reset the sandbox")
    try:
        parts.restore(saved)
    except Exception as error:
        traceback.print_exc()  # the log shows where
        raise Unreadable(
            f"the state in {state} can't be taken over ({error!r}): reset the sandbox"
        ) from error


class _Endpoints:
    """endpoints.json, and what is handed to other clients: written when all servers listen, and again when an
    address is added or removed.
    """

    def __init__(self, state: Path, pki: Pki, parts: Parts, control: int) -> None:
        self._path, self._parts, self._lock = state / "endpoints.json", parts, threading.Lock()
        self._pki, self._files = pki, handout.Files(state)
        self._fixed: dict[str, Any] = {
            "format_version": FORMAT,
            "pid": os.getpid(),
            "started": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "ca_file": str(pki.ca_file.resolve()),
            "control": f"127.0.0.1:{control}",
            "env": dict(parts.world.env),
            "files": str((state / "files").resolve()),
        }

    def follow(self) -> None:
        """Write now and after each change."""
        self._parts.listeners.changed = self._write
        self._write({})

    def remove(self) -> None:
        """Nothing listens any more."""
        self._path.unlink(missing_ok=True)
        self._files.remove()

    def _write(self, _: dict[str, int]) -> None:
        with self._lock:
            addresses = {
                address: f"127.0.0.1:{port}"
                for address, port in sorted(
                    {**self._parts.listeners.ports(), **self._parts.linux.ports}.items()
                )
            }
            shown = handout.variables(
                self._parts.world,
                self._pki.ca_file.resolve(),
                self._files.kubeconfig,
                addresses,
                self._parts.supervisors.logins(),
            )
            config = handout.kubeconfig(self._parts.kubernetes(), addresses, self._pki.ca_pem)
            self._files.write({**handout.secrets(self._parts.world), **shown}, config)
            folder.write(self._path, {**self._fixed, "addresses": addresses, "clients": shown})

"""Reports a watch to systemd, which runs it as a service: that it is ready, its status, and that it still
works (sd_notify(3)).
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfinfra.app.listener import Listener
from bfinfra.formats.visible import visible
from bfinfra.model.redact import redact

if TYPE_CHECKING:
    from bfinfra.app.sight import Sight

OFTEN = 4  # signs of life in the time after which systemd takes the service for dead


class Service(Listener):
    """`address`: systemd's socket; `lasts`: seconds of silence after which systemd kills it, 0 for none."""

    def __init__(self, address: str, lasts: float = 0) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._pause, self._last_beat = lasts / OFTEN, 0.0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Service | None:
        """The service of this process; None if systemd did not start it so."""
        address = environment.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return None
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        lasts = environment.get("WATCHDOG_USEC", "") if mine else ""
        return cls(address, int(lasts) / 1e6 if lasts.isdecimal() else 0)

    def report(self, sight: Sight) -> None:
        """Report that it is ready, and what drifted."""
        found = sight.report
        status = f"{len(found.alarming)} drifted" if found.alarming else "no drift"
        blind = len(found.unreadable) + len(found.problems)
        status += f"; {blind} can not be read" if blind else ""
        self._say("READY=1", f"STATUS={visible(status)}")

    def interrupted(self, why: str, blind: float) -> None:
        """Report that servers are not followed, and that it still works."""
        self._say(f"STATUS=changes are not followed: {visible(redact(' '.join(why.split())))}")

    def turned(self, changes: int) -> None:
        """A sign of life."""
        self.beat()

    def beat(self) -> None:
        """A sign of life, where systemd expects one."""
        now = time.monotonic()
        if self._pause and now >= self._last_beat + self._pause:
            self._last_beat = now
            self._say("WATCHDOG=1")

    def close(self) -> None:
        """Report that it ends."""
        self._say("STOPPING=1")

    def _say(self, *lines: str) -> None:
        """What systemd does not take is lost, as in systemd's own library."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.sendto("\n".join(lines).encode(), self._address)

"""Sessions of the sandbox's vCenter: SOAP and REST share users, passwords and expiry."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bfinfra.sandbox.clock import Clock


class BadLogin(Exception):
    """Unknown user or wrong password."""


@dataclass
class Session:
    """One login. `user` is the world's user; times are seconds since the epoch."""

    key: str
    user: Any
    api: str
    started: float
    used: float
    agent: str = ""
    calls: int = 0
    held: dict[str, Any] = field(
        default_factory=dict
    )  # what an API keeps for the session: pages not yet fetched, filters


def full_name(typed: str) -> str:
    r"""A user as name@domain. Without a domain it is in the default one; DOMAIN\name is the other form."""
    domain, _, name = typed.rpartition("\\")
    if domain:
        return f"{name}@{domain}"
    return typed if "@" in typed else f"{typed}@vsphere.local"


class Sessions:
    """Open sessions by key. `idle`: seconds after which an unused one expires."""

    def __init__(self, users: Iterable[Any], clock: Clock, idle: float = 1800) -> None:
        self.idle = idle
        self._users = {user.name.lower(): user for user in users}
        self._clock = clock
        self._open: dict[str, Session] = {}
        self._lock = threading.Lock()

    def login(self, name: str, password: str, api: str = "vcenter", agent: str = "") -> Session:
        """A new session. Raises BadLogin if name and password don't fit."""
        user = self._users.get(full_name(name).lower())
        if user is None or not secrets.compare_digest(str(user.password).encode(), password.encode()):
            raise BadLogin(name)
        now = self._clock.now()
        session = Session(secrets.token_hex(20), user, api, now, now, agent)
        with self._lock:
            self._open[session.key] = session
        return session

    def find(self, key: str | None) -> Session | None:
        """The open session of the key, marked as used now; None where it ended or was idle for too long."""
        with self._lock:
            session = self._open.get(key or "")
            if session is None:
                return None
            if self._clock.now() - session.used > self.idle:
                del self._open[session.key]
                return None
            session.used = self._clock.now()
            session.calls += 1
            return session

    def end(self, key: str) -> Session | None:
        """Close a session; the one that was open, if any."""
        with self._lock:
            return self._open.pop(key, None)

    def end_all(self) -> None:
        """Close every session at once."""
        with self._lock:
            self._open.clear()

    def all(self) -> list[Session]:
        """The open sessions, the expired ones left out."""
        with self._lock:
            limit = self._clock.now() - self.idle
            self._open = {key: each for key, each in self._open.items() if each.used >= limit}
            return list(self._open.values())

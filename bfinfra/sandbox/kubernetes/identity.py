"""Users, and their tokens until these expire."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from bfinfra.sandbox.clock import Clock

MASTERS = "system:masters"


@dataclass(frozen=True)
class User:
    """A name and its groups, as RBAC sees them."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def all_groups(self) -> tuple[str, ...]:
        """With the one that every authenticated user is in."""
        return (*self.groups, "system:authenticated")


class Tokens:
    """Signed bearer tokens (JWT, HS256). One that was issued before a restart or before `end_all` is not
    known any more.
    """

    def __init__(self, clock: Clock, issuer: str) -> None:
        self._clock, self._issuer = clock, issuer
        self._secret = secrets.token_bytes(32)
        self._key = hashlib.sha1(self._secret, usedforsecurity=False).hexdigest()
        self._users: dict[str, tuple[User, float]] = {}
        self._lock = threading.Lock()

    def issue(self, user: User, seconds: float, claims: Mapping[str, object] | None = None) -> str:
        """A token for a user, good for so many seconds."""
        now = self._clock.now()
        body = {
            "iss": self._issuer,
            "sub": user.name,
            "iat": int(now),
            "exp": int(now + seconds),
            "jti": secrets.token_hex(8),
            "group_names": list(user.groups),
            **(claims or {}),
        }
        head = _part({"alg": "HS256", "typ": "JWT", "kid": self._key})
        signed = f"{head}.{_part(body)}"
        digest = hmac.new(self._secret, signed.encode(), hashlib.sha256).digest()
        token = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
        with self._lock:
            self._users[token] = (user, now + seconds)
        return token

    def keep(self, token: str, user: User) -> None:
        """Add a token of a user that never expires (a kubeconfig's administrator)."""
        with self._lock:
            self._users[token] = (user, float("inf"))

    def find(self, token: str) -> User | None:
        """The user of a token; None where it is unknown or expired."""
        with self._lock:
            user, until = self._users.get(token, (None, 0.0))
            return user if until > self._clock.now() else None

    def end_all(self) -> None:
        """Expire every token that expires at all."""
        with self._lock:
            self._users = {token: held for token, held in self._users.items() if held[1] == float("inf")}

    def open(self) -> list[str]:
        """Names of users with tokens that are still good and will expire."""
        with self._lock:
            return sorted(
                user.name for user, until in self._users.values() if self._clock.now() < until < float("inf")
            )


def _part(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

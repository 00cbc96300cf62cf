"""Passwords of a world: written ones, those of another name, and generated ones that stay the same for one
state folder.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from bfinfra.sandbox.reading import BadWorld


class Passwords:
    """Generated from a seed, so that a restart of the world gives the same ones."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    @staticmethod
    def kept_in(folder: Path) -> Passwords:
        """With the folder's seed; made, readable by its owner only, where there is none."""
        path = folder / "seed"
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(32))
        return Passwords(path.read_bytes())

    def of(self, value: object, name: str, env: Mapping[str, str]) -> str:
        """The text of `value`: text, {env: NAME} or {generate: password}. Raises BadWorld for anything
        else.
        """
        match value:
            case str():
                return value
            case {"env": str(other)} if other in env:
                return env[other]
            case {"env": other}:
                raise BadWorld(f"{name}: the world's env has no {other}")
            case {"generate": "password"}:
                return self.generated(name)
        raise BadWorld(f"{name}: write a text, {{env: NAME}} or {{generate: password}}")

    def generated(self, name: str) -> str:
        """A password with letters of both cases, digits and a sign."""
        raw = hmac.new(self._seed, name.encode(), hashlib.sha256).digest()
        return "Aa1!" + base64.b32encode(raw[:10]).decode().lower()

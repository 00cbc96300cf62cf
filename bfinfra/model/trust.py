"""The certificate that a server must show."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from bfinfra.model.errors import FieldError
from bfinfra.model.records import dataclass
from bfinfra.model.sources import LocalFile


def _fingerprint(value: str) -> str:
    plain = value.replace(":", "").lower()
    if not re.fullmatch("[0-9a-f]{64}", plain):
        raise ValueError("expected a SHA-256 fingerprint: 64 hexadecimal digits, colons allowed")
    return plain


Fingerprint = Annotated[str, AfterValidator(_fingerprint)]


class Trust(BaseModel):
    """A CA bundle, or the SHA-256 of the server's own certificate; by default the system's store.
    Verification is never off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    ca_file: LocalFile | None = None
    """PEM file with the certificate authorities to trust."""
    sha256: Fingerprint | None = None
    """SHA-256 fingerprint of the server's certificate."""
    ca_pem: str | None = None
    """The authorities themselves, as PEM; set by bfinfra from what a trusted server handed over."""

    @model_validator(mode="before")
    @classmethod
    def _one(cls, value: object) -> Any:
        if (
            isinstance(value, dict)
            and sum(value.get(k) is not None for k in ("ca_file", "sha256", "ca_pem")) > 1
        ):
            raise FieldError("give ca_file or sha256, not both", "sha256")
        return value


@dataclass(frozen=True)
class Server:
    """`what`: what it is in the site; where it is; `extra_pem`: certificate authorities in addition to those
    of `trust`.
    """

    what: str
    host: str
    port: int
    trust: Trust
    extra_pem: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        """Its host:port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def host_and_port(server: str) -> tuple[str, int]:
    """Host and port of `host`, `host:port` or `[::1]:port`."""
    host, colon, port = server.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.startswith("[")):
        return host.strip("[]"), int(port)
    return server.strip("[]"), 443

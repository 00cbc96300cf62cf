"""A Bitfusion client token: three files, which are checked and never printed."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any

from bfinfra.backends.bitfusion.archive import FILES, BadToken, members
from bfinfra.model import foreign
from bfinfra.model.records import dataclass
from bfinfra.model.redact import hide

PORT = 56001
HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")


@dataclass(frozen=True)
class Token:
    """`servers`: (host, port), each once, reachable ones first. `not_after`: when its CA expires, UTC.
    `digest`: of all three files.
    """

    servers: tuple[tuple[str, int], ...]
    not_after: datetime
    digest: str
    ca_crt: str = field(repr=False)
    client_yaml: str = field(repr=False)
    servers_conf: str = field(repr=False)

    @property
    def files(self) -> dict[str, str]:
        """File name → content."""
        return dict(zip(FILES, (self.ca_crt, self.client_yaml, self.servers_conf), strict=True))


def read_token(path: Path) -> Token:
    """The token in a tar or folder. Raises ValueError with what is wrong and what to do, without quoting the
    content.
    """
    if not path.exists():
        raise BadToken(
            f"there is no {path}: download the token from the Bitfusion plug-in, or correct the path"
        )
    return token_of(members(path))


def token_of(found: Mapping[str, bytes]) -> Token:
    """The token of these files. Raises ValueError as above."""
    if missing := [name for name in FILES if name not in found]:
        raise BadToken(f"there is no {', '.join(missing)}")
    texts = {name: _text(name, found[name]) for name in FILES}
    if not isinstance(client := _yaml("client.yaml", texts["client.yaml"]), dict):
        raise BadToken("client.yaml is not a mapping: download the token again")
    for value in client.values():
        hide(str(value))
    return Token(
        _servers(_yaml("servers.conf", texts["servers.conf"])),
        _not_after(found["ca.crt"]),
        digest(found),
        texts["ca.crt"],
        texts["client.yaml"],
        texts["servers.conf"],
    )


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the files of a token, hexadecimal; the same for the same contents in any place."""
    whole = hashlib.sha256()
    for name in FILES:
        content = files.get(name, b"")
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadToken(f"{name} is not text: download the token again") from None


def _yaml(name: str, text: str) -> Any:
    try:
        found = foreign.documents(text)
    except foreign.Unfit as error:
        raise BadToken(f"{name}: {error}: download the token again") from None
    return found[0] if len(found) == 1 else None


def _servers(config: object) -> tuple[tuple[str, int], ...]:
    entries = config.get("servers") if isinstance(config, dict) else None
    if not isinstance(entries, list) or not entries:
        raise BadToken("servers.conf has no list `servers`: download the token again")
    found: dict[tuple[str, int], None] = {}
    for entry in entries:
        if isinstance(entry, str) and entry.startswith(("reachable:", "addresses:")):
            name = entry.partition(":")[0]
            raise BadToken(f"servers.conf lacks the blank after `{name}:`: write `{name}: ADDRESS`")
        if not isinstance(entry, dict):
            raise BadToken("servers.conf: a server is not a mapping with reachable and addresses")
        addresses = entry.get("addresses") or []
        if not isinstance(addresses, list):
            raise BadToken("servers.conf: `addresses` is not a list")
        found |= dict.fromkeys(_address(a) for a in (entry.get("reachable"), *addresses) if a is not None)
    if not found:
        raise BadToken("servers.conf names no address: download the token again")
    return tuple(found)


def _address(value: object) -> tuple[str, int]:
    host, colon, port = str(value).rpartition(":") if not _is_ip(str(value)) else (str(value), "", "")
    host = host.removeprefix("[").removesuffix("]") if colon else str(value)
    port = port if colon else str(PORT)
    if (
        not isinstance(value, str)
        or not (_is_ip(host) or HOST.fullmatch(host))
        or not port.isdigit()
        or not 0 < int(port) < 65536
    ):
        raise BadToken("servers.conf: an address is not HOST:PORT")
    return host, int(port)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _not_after(pem: bytes) -> datetime:
    from cryptography import x509  # noqa: PLC0415 - start-up is a feature

    try:
        chain = x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise BadToken("ca.crt contains no certificate in PEM form: download the token again") from None
    return min(certificate.not_valid_after_utc for certificate in chain)

"""FlexDirect's lists of servers (servers.conf): one address a line, with its port unless it is the usual one;
`#` begins a comment. Pure. (Guide, step 5.)
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

PORT = 56001
FILE = "servers.conf"


def render(servers: Iterable[str], heading: str = "") -> str:
    """The text of a list of `address:port`; `heading`: a comment above it."""
    return "".join(
        [
            *([f"### {heading}\n"] if heading else []),
            *(f"{each.removesuffix(f':{PORT}')}\n" for each in servers),
        ]
    )


def parse(text: str) -> tuple[str, ...]:
    """`address:port` of each server. Raises ValueError with the line that is none: a cut address would lead
    elsewhere.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        address, colon, port = written.partition(":") if written.count(":") < 2 else (written, "", "")
        if (colon and not (port.isdecimal() and 0 < int(port) < 65536)) or not _fits(address):
            raise ValueError(f"line {number}: {written} is not an address, with or without a port")
        found.append(f"{address}:{port or PORT}")
    return tuple(found)


def _fits(address: str) -> bool:
    """A whole IP address, or a host's name."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return (
            not all(part.isdecimal() for part in address.split("."))
            and address.replace("-", "").replace(".", "").isalnum()
        )
    return True

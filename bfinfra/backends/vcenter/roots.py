"""The certificate authorities of vCenter, which anybody may download as a ZIP archive."""

from __future__ import annotations

from bfinfra.backends.archives.bounds import Bounds, Budget
from bfinfra.backends.archives.zip import files
from bfinfra.backends.vcenter import faults
from bfinfra.backends.vcenter.rest import Rest

AUTHORITIES = "/certs/download.zip"
BOUNDS = Bounds(whole=16 << 20, member=1 << 20, members=10_000, folders=4)
"""Of each authority there are a certificate and a revocation list, once for each of three systems."""


def of(rest: Rest) -> str:
    """All of them as PEM. Raises RemoteError."""
    packed = rest.bytes(AUTHORITIES)
    try:
        found = files(packed, Budget(BOUNDS), _is_root)
        return "\n".join(content.decode("ascii") for _, content in found)
    except ValueError as error:
        raise faults.malformed(f"{AUTHORITIES} can't be read", rest.server, error) from None


def _is_root(name: str) -> bool:
    return name.startswith("certs/lin/") and name.endswith(".0")

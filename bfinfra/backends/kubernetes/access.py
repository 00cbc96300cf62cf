"""Access to a Kubernetes API: address, trust, and the token or certificate."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import field

from bfinfra.model.records import dataclass
from bfinfra.model.trust import Trust

MARGIN = 60  # seconds before its expiry from which a token counts as expired


@dataclass(frozen=True)
class Access:
    """`token` or `identity` (certificate and key, PEM) identifies the user; neither is ever printed.
    `expires`: epoch seconds.
    """

    url: str
    trust: Trust
    extra_pem: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    identity: tuple[str, str] | None = field(default=None, repr=False)
    expires: float | None = None

    @property
    def address(self) -> str:
        """The server's address, with its port if the URL has one."""
        return self.url.removeprefix("https://").partition("/")[0]

    @property
    def spent(self) -> bool:
        """True if the token expires soon."""
        return self.expires is not None and time.time() > self.expires - MARGIN


def expiry(token: str) -> float | None:
    """The `exp` of a JSON Web Token in epoch seconds, not verified: it only decides when to log in again.
    None if it has none.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    exp = claims.get("exp") if isinstance(claims, dict) else None
    return float(exp) if isinstance(exp, int | float) and not isinstance(exp, bool) else None

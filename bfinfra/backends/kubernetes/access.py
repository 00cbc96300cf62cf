"""How one Kubernetes API is entered: address, whom to trust, and the token or certificate that says who we
are.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import field

from bfinfra.model.records import dataclass
from bfinfra.model.trust import Trust

MARGIN = 60  # seconds before its end at which a token counts as spent


@dataclass(frozen=True)
class Access:
    """`token` or `identity` (certificate and key, PEM) says who we are; neither is ever printed. `expires`:
    epoch seconds.
    """

    url: str
    trust: Trust
    extra_pem: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    identity: tuple[str, str] | None = field(default=None, repr=False)
    expires: float | None = None

    @property
    def address(self) -> str:
        """The server's, with its port where the URL has one."""
        return self.url.removeprefix("https://").partition("/")[0]

    @property
    def spent(self) -> bool:
        """Whether the token is about to end."""
        return self.expires is not None and time.time() > self.expires - MARGIN


def expiry(token: str) -> float | None:
    """The `exp` of a JSON Web Token in epoch seconds, unverified: only to know when to log in again. None
    where it says nothing.
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

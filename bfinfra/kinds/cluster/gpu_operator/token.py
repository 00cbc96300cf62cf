"""A client configuration token of NVIDIA's license service: a JWT."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime

PARTS = 3  # head, claims, signature


def wrong(token: str, now: datetime) -> str:
    """Return why the token can't be used, or "". Never quotes it. Its signature is not checked: the service
    does.
    """
    if not token.strip():
        return "the license token is empty"
    parts = token.strip().split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, binascii.Error):
        claims = None
    if len(parts) != PARTS or not isinstance(claims, dict):
        return "the license token is no client configuration token: it is not a JWT"
    ends = claims.get("exp")
    if isinstance(ends, int | float) and ends <= now.timestamp():
        return f"the license token expired on {datetime.fromtimestamp(ends, UTC):%Y-%m-%d}"
    return ""

"""Sends drift messages: one signed POST of JSON."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from bfinfra.backends.transport import Transport
from bfinfra.model.drift import Notify
from bfinfra.model.errors import Busy, Rejected, RemoteError

PASSES = (408, 425, 429, 500, 502, 503, 504)


def post(transport: Transport, hook: Notify, body: Mapping[str, object]) -> None:
    """Deliver once. The caller may send the same body again; its `id` shows the receiver that it has it.
    Raises RemoteError.

    `X-Bfinfra-Signature: sha256=HEX` is the HMAC-SHA256, with the secret, of the text `TIMESTAMP.BODY`;
    `X-Bfinfra-Timestamp` has the timestamp in seconds since the epoch, against replays.
    """
    parts = urlsplit(hook.url)
    data, at = json.dumps(body, separators=(",", ":"), sort_keys=True).encode(), str(int(time.time()))
    signature = hmac.new(hook.secret.reveal().encode(), f"{at}.".encode() + data, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Bfinfra-Timestamp": at,
        "X-Bfinfra-Signature": f"sha256={signature}",
    }
    with (
        transport.client(f"https://{parts.netloc}", hook.trust) as client,
        client.stream("POST", hook.url, content=data, headers=headers) as answer,
    ):
        if not answer.is_success:
            raise _error(answer.status_code, answer.headers.get("retry-after", ""), parts.netloc)


def _error(code: int, after: str, server: str) -> RemoteError:
    what = "the webhook does not accept the message"
    if code in PASSES:
        return Busy(
            what,
            server=server,
            why=f"it answers {code}",
            retry_after=float(after) if after.isdigit() and len(after) < 6 else None,
        )
    return Rejected(
        what,
        server=server,
        why=f"it answers {code}",
        next="check the address, and the secret that signs the message" if code in (401, 403, 404) else "",
    )

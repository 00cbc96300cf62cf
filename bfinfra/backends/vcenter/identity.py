"""The identity of a vCenter, for servers that register with it."""

from __future__ import annotations

import fnmatch
import re
from urllib.parse import urlsplit

from bfinfra.model.records import dataclass


@dataclass(frozen=True)
class Identity:
    """`server` as in the site; `guid`: its instance UUID; `url`: `https://HOST`, with the port unless 443.

    `thumbprint`: SHA-1 of its certificate with colons, or ""; `sha256`: its SHA-256; `names`: those that the
    certificate is valid for, () if unknown.
    """

    server: str
    guid: str
    url: str
    thumbprint: str = ""
    sha256: str = ""
    names: tuple[str, ...] = ()

    def has_guid(self, guid: str) -> bool:
        """Return whether this is its GUID."""
        return guid.lower() == self.guid.lower()

    def shows(self, thumbprint: str) -> bool:
        """Return whether this is its certificate's SHA-1 or SHA-256, with any separators."""
        digits = _digits(thumbprint)
        return digits in (_digits(self.thumbprint), _digits(self.sha256))

    def answers_at(self, url: str) -> bool:
        """Return whether this address is the site's name of it, or one that its certificate is valid for."""
        scheme, host, port = _parts(url)
        _, own, at = _parts(self.url)
        named = (
            host == own
            or not self.names
            or any(fnmatch.fnmatchcase(host, name.lower()) for name in self.names)
        )
        return scheme == "https" and port == at and named


def _digits(thumbprint: str) -> str:
    return re.sub(r"[^0-9a-f]", "", thumbprint.lower().removeprefix("sha-1").removeprefix("sha-256"))


def _parts(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url.strip())
        return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or 443
    except ValueError:
        return "", "", 0

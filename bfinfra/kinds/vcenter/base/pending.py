"""Names of objects whose create call can't set a mark. bfinfra creates such an object under a pending name
that tells the site, notes the mark on it, then renames it. Before it deletes the object it gives back the
pending name, then removes the note. So the object is recognisable at every instant.
"""

from __future__ import annotations

import hashlib
import re

LONGEST = 60  # characters of an object's own name that fit beside the site's digest: vCenter takes 80
PENDING = re.compile(r"(?P<name>.+) bfinfra-(?P<site>[0-9a-f]{10})")


def pending(name: str, site: str) -> str:
    """The name of a site's object while it has no note."""
    return f"{name} bfinfra-{_digest(site)}"


def pending_name(found: str, site: str) -> str | None:
    """The name that an object will get, if it has a pending name of this site, else None."""
    match = PENDING.fullmatch(found)
    return match["name"] if match and match["site"] == _digest(site) else None


def _digest(site: str) -> str:
    return hashlib.sha256(site.encode()).hexdigest()[:10]

"""The mark of an object whose create call has no place for one: until it is noted, its name says whose it is.

Such an object is made under a pending name, gets its note, and only then its own name; on its way out it gets
the pending name back before the note goes. So there is no instant at which it stands without a mark.
"""

from __future__ import annotations

import hashlib
import re

LONGEST = 60  # characters of a name, for which there is room beside the mark: vCenter takes 80
PENDING = re.compile(r"(?P<name>.+) bfinfra-(?P<site>[0-9a-f]{10})")


def pending(name: str, site: str) -> str:
    """The name under which a site's object stands while it has no note."""
    return f"{name} bfinfra-{_digest(site)}"


def pending_name(found: str, site: str) -> str | None:
    """The name that an object is to have, if it stands under this site's pending one, else None."""
    match = PENDING.fullmatch(found)
    return match["name"] if match and match["site"] == _digest(site) else None


def _digest(site: str) -> str:
    return hashlib.sha256(site.encode()).hexdigest()[:10]

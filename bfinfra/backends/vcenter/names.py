"""Names of objects as people write them, and as vCenter keeps them: there slashes of both kinds and `%` are
escaped. Source: ManagedEntity.name of the vSphere API.
"""

from __future__ import annotations

import re

ESCAPES = {"%2f": "/", "%5c": "\\", "%25": "%"}
ESCAPED = re.compile("|".join(ESCAPES), re.IGNORECASE)


def written(kept: object) -> str:
    """The name that people write, of one that vCenter keeps; "" for None."""
    name = str(kept or "")
    return ESCAPED.sub(lambda found: ESCAPES[found[0].lower()], name) if "%" in name else name


def sent(name: str) -> str:
    """The name to send for a new object. vCenter escapes slashes itself, and takes `%` for an escape."""
    return name.replace("%", "%25")

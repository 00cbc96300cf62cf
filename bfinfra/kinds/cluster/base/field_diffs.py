"""The differences between a manifest and the live object. Fields that the server or somebody else added don't
count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bfinfra.model.compare import Change

PRIVATE = re.compile(r"pass|secret|token|key|credential", re.IGNORECASE)
"""Names of environment variables whose values are never shown."""
HIDDEN = ("another value", "as in the manifest")
"""The live and the desired value of a field that is never shown."""


def field_diffs(wanted: object, live: object, path: str = "") -> Iterator[Change]:
    """The differences, leaf by leaf. Lists of equal length are compared item by item, as servers add defaults
    to items.
    """
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        for name, value in wanted.items():
            yield from field_diffs(value, live.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        for index, value in enumerate(wanted):
            yield from field_diffs(value, live[index], f"{path}.{index}")
    elif wanted != live and not (live is None and wanted in ({}, [])):
        yield Change(path, live, wanted)

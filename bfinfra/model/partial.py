"""The part of a site that a plan or report is about."""

from __future__ import annotations

from typing import Any

from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key


@dataclass(frozen=True, slots=True)
class Partial:
    """`targets`: the resources that were named; `keys`: these and all that must be done before them;
    `left_out`: the number of other resources.
    """

    targets: tuple[Key, ...]
    keys: frozenset[Key]
    left_out: int

    def data(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "targets": [str(key) for key in self.targets],
            "resources": sorted(map(str, self.keys)),
            "left_out": self.left_out,
        }

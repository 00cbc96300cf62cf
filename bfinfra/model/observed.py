"""A resource of a site as it is on the servers."""

from __future__ import annotations

from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key


@dataclass(frozen=True)
class Observed:
    """`status` in words; `why`: why it can't be read, waits or is refused; `state`: what its server reports,
    None where it doesn't exist.
    """

    key: Key
    status: str
    why: str | None = None
    state: object = None

"""What bfinfra writes on a host about one setting of it: whose it is, and how it was before. One custom
attribute a setting.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds

RIGHTS = (holds("hosts", "Global.SetCustomField"), holds("definitions", "Global.ManageCustomFields"))
"""What writing such a note takes."""


@dataclass(frozen=True)
class HostNote:
    """The mark, and the earlier value as text; None where there was nothing before."""

    mark: Mark
    before: str | None = None

    def encode(self) -> str:
        """One line."""
        return self.mark.encode() + ("" if self.before is None else f" before={quote(self.before, safe='')}")

    @classmethod
    def decode(cls, text: str) -> HostNote | None:
        """The note, or None where there is no mark."""
        mark = Mark.decode(text)
        before = next(
            (unquote(word.removeprefix("before=")) for word in text.split() if word.startswith("before=")),
            None,
        )
        return cls(mark, before) if mark else None

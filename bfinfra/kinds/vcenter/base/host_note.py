"""The note that bfinfra writes on a host or cluster about one setting: its mark, and the value that was there
before. Each setting has a custom attribute of its own.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds

RIGHTS = (holds("hosts", "Global.SetCustomField"), holds("definitions", "Global.ManageCustomFields"))
"""The privileges to write such a note."""


@dataclass(frozen=True)
class HostNote:
    """The mark, and the earlier value as text; None if there was none."""

    mark: Mark
    before: str | None = None

    def encode(self) -> str:
        """The note as one line of text."""
        return self.mark.encode() + ("" if self.before is None else f" before={quote(self.before, safe='')}")

    @classmethod
    def decode(cls, text: str) -> HostNote | None:
        """The note in a line of text, or None if the text has no mark."""
        mark = Mark.decode(text)
        before = next(
            (unquote(word.removeprefix("before=")) for word in text.split() if word.startswith("before=")),
            None,
        )
        return cls(mark, before) if mark else None

"""What kinds of images share: what is known of an image that is built on this machine."""

from __future__ import annotations

from bfinfra.model import resource
from bfinfra.model.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Made(resource.State):
    """`built`, `pushed`: image and content, "" where not done."""

    built: str = ""
    pushed: str = ""
    tool: str = ""
    """What builds here, "" where nothing does."""
    due: str = ""
    """Image and content that it is to be built of, "" where that is known to nobody but its own decision."""
    why: str = ""
    """Why nothing does."""

    def undone(self, build: str) -> str:
        """Why it is left to a person; `build` as the site says it."""
        return "build is never" if build == "never" else self.why

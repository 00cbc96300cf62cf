"""What kinds of images share: what is known of an image that is built on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bfinfra.model import resource
from bfinfra.model.finding import Finding, good, warning
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.kinds.checks import CheckContext
    from bfinfra.kinds.server_checks import Check


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


def builders(kind_name: str) -> Check:
    """The check that the images of a kind can be built here."""

    def tools(context: CheckContext) -> Iterator[Finding]:
        """What builds images is installed, where the site has images to build."""
        building = ", ".join(str(key) for key, spec in context.of(kind_name).items() if spec.build != "never")
        if not building:
            return
        tool, why = context.images.tool()
        if tool:
            yield good(building, f"{tool.name} builds them")
        else:
            yield warning(
                building,
                "nothing builds images here",
                why,
                "install docker or podman, or write build: never and build by hand",
            )

    return tools

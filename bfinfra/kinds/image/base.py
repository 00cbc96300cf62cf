"""The common part of kinds of images: how an image is built on this machine, and what was built."""

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
    """The result of a build. `built`, `pushed`: image and content, "" if not done."""

    built: str = ""
    pushed: str = ""
    tool: str = ""
    """The tool that builds here, "" if there is none."""
    due: str = ""
    """Image and content to build, "" if only `steps` knows them."""
    why: str = ""
    """Why no tool builds here."""

    def undone(self, build: str) -> str:
        """Return why a person has to build it; `build`: the field of the site."""
        return "the field build is never" if build == "never" else self.why


def builders(kind_name: str) -> Check:
    """The check whether the images of a kind can be built here."""

    def tools(context: CheckContext) -> Iterator[Finding]:
        """A finding: whether a tool that builds images is installed, if the site has images to build."""
        building = ", ".join(str(key) for key, spec in context.of(kind_name).items() if spec.build != "never")
        if not building:
            return
        tool, why = context.images.tool()
        if tool:
            yield good(building, f"{tool.name} builds them")
        else:
            yield warning(
                building,
                "no tool here can build images",
                why,
                "install docker or podman, or write build: never and build them by hand",
            )

    return tools

"""Where a site's images are noted on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.model import private

if TYPE_CHECKING:
    from bfinfra.model.site import Site


def contexts(site: Site) -> Path:
    """The file with the folders that were rendered for it. It exists from the first one."""
    return _home(site) / "client_images.json"


def records(site: Site) -> Path:
    """The folder with a folder for each image that was built from a user's folder. It exists from the first
    one.
    """
    return _home(site) / "images"


def exist(site: Site) -> bool:
    """Return whether any image of the site was ever noted here."""
    return contexts(site).exists() or records(site).exists()


def _home(site: Site) -> Path:
    """The site's state folder on this machine; the sandbox's is inside of its own."""
    if site.stand_ins is not None:
        return site.stand_ins / ".bfinfra" / site.name
    return private.home() / site.name

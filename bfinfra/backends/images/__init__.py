"""Container images: build contexts on this machine, and the tools that build and push them."""

from __future__ import annotations

from bfinfra.backends.images.archive import contents, full_name
from bfinfra.backends.images.folder import Folder, Record
from bfinfra.backends.images.images import Images
from bfinfra.backends.images.tools import Recipe, Tool

__all__ = ["Folder", "Images", "Recipe", "Record", "Tool", "contents", "full_name"]

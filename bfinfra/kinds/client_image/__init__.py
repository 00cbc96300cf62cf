"""A container image with the Bitfusion client in it: its build context, built and pushed where that can be done. (Configuration of AI/ML application.)"""

from __future__ import annotations

from bfinfra.kinds.client_image.kind import ClientImage
from bfinfra.kinds.client_image.spec import Spec
from bfinfra.kinds.client_image.state import State

__all__ = ["ClientImage", "Spec", "State"]

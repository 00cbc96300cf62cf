"""Limits a run to a token's Secrets and the copies of them that others made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.app.wiring import BoundKinds


@dataclass(frozen=True)
class Rotation:
    """`token`: a bitfusion_token's name, "" if the site uses only one. `restart`: also restart what holds the
    old token.
    """

    token: str = ""
    restart: bool = False


def bind_rotation(site: Site, rotation: Rotation, bound: BoundKinds) -> frozenset[Key]:
    """Add the kinds that rotate the token to the bound ones; returns the resources of the rotation."""
    from bfinfra.kinds.cluster.token_secret import rotate

    keys = rotate.about(site, rotation.token)
    bound.kinds["token_secret"] = rotate.Rotation(
        bound.backends.clusters, bound.backends.cache, site, restart=rotation.restart
    )
    return keys

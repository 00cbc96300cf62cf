"""The rights that an account needs."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.kinds import kind, names
from bfinfra.model.rights import Rights, Use
from bfinfra.model.site import Site


def privileges(site: Site, uses: Iterable[Use] = tuple(Use)) -> Rights:
    """The rights that an account needs on vCenter and in each cluster, derived from the site's kinds.
    Contacts no server.
    """
    from bfinfra.engine.rights import needed

    return needed(site, {name: kind(name) for name in names()}, uses)

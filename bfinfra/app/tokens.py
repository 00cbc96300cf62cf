"""The site's Bitfusion tokens, as their sources hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.kinds.source.bitfusion_token import State as Token


def tokens(site: Site) -> dict[str, Token | Problem]:
    """The site's Bitfusion tokens as their sources hold them now, by name: servers, and when each ends; a
    Problem where one can't be read. Asks nobody.
    """
    from bfinfra.kinds.source.bitfusion_token import BitfusionToken

    wanted = {key.name: spec for key, spec in site.resources.items() if key.kind == "bitfusion_token"}
    seen = BitfusionToken().observe(wanted, {})
    unread = {
        name: Problem(
            f"bitfusion_token/{name} can't be read",
            site.place(Key("bitfusion_token", name), "source") or "",
            str(seen.facts[name]),
        )
        for name in wanted
    }
    return {name: seen.states.get(name) or unread[name] for name in wanted}

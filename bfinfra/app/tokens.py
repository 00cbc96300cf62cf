"""The site's Bitfusion tokens, read from their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.kinds.source.bitfusion_token.kind import State as Token


def tokens(site: Site) -> dict[str, Token | Problem]:
    """Name → the token as its source holds it now, with its servers and when it expires; a Problem if it
    can't be read. Contacts no server.
    """
    from bfinfra.kinds.source.bitfusion_token.kind import BitfusionToken

    wanted = {key.name: spec for key, spec in site.resources.items() if key.kind == "bitfusion_token"}
    observation = BitfusionToken().observe(wanted, {})
    unread = {
        name: Problem(
            f"bitfusion_token/{name} can't be read",
            site.place(Key("bitfusion_token", name), "source") or "",
            str(observation.facts[name]),
        )
        for name in wanted
    }
    return {name: observation.states.get(name) or unread[name] for name in wanted}

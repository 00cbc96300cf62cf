"""The addresses of a site's machines and clusters."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.model.refs import Key
from bfinfra.model.site import Site


def addresses(site: Site, *, look: bool = True, context: RunContext = LIVE) -> Mapping[Key, str]:
    """Address → name or address, with :port unless it is the usual one. Only reads.

    From the live state, or from the file if that is unknown; with `look` False, only from the file. Resources
    without an address are left out.
    """
    found = {key: address for key, spec in site.resources.items() if (address := spec.answers_at())}
    if look:
        with wiring.bound_kinds(site, context, site.resources, read_only=True) as bound:
            states = wiring.observe(bound, site.resources, context).states
        found |= {
            key: address
            for key, state in states.items()
            if key in site.resources and (address := state.answers_at())
        }
    return found

"""Where machines and clusters of a site answer."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.model.refs import Key
from bfinfra.model.site import Site


def addresses(site: Site, *, look: bool = True, context: RunContext = LIVE) -> Mapping[Key, str]:
    """Where machines and clusters of the site answer: a name or address, with :port where it isn't the usual
    one. Read-only.

    As the live state says, where nothing is known there as the file says; without `look` as the file says,
    and nobody is asked. What has no address is left out.
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

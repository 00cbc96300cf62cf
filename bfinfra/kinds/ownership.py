"""Whose a thing is that two resources, or two sites, may both want to look after."""

from __future__ import annotations

from bfinfra.model.errors import Refusal
from bfinfra.model.kind import PlanContext
from bfinfra.model.mark import Mark


def refuse_others(mark: Mark | None, context: PlanContext, what: str, field: str = "") -> None:
    """Refusal where the mark is another resource's, of this site or of another one. `what`: what is said of
    it.
    """
    if mark is not None and (mark.site, mark.address) != (context.mark.site, context.mark.address):
        raise Refusal(
            what,
            field=field,
            why=f"it belongs to {mark.address} of {mark.site}",
            next="take it out of one of the two",
        )

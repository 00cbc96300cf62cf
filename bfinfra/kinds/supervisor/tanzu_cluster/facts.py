"""The facts that decisions need besides the clusters themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.base.offers import Offer
from bfinfra.model.awaited import Away
from bfinfra.model.records import dataclass


@dataclass(frozen=True)
class TanzuClusterFacts:
    """`offers`: by supervisor namespace. `authorities`: path → PEM, "" if the file doesn't exist yet, or why
    it can't be read (`!…`). `environment`: what the checks of fit need. `undeclared`: cluster → the fields
    that its supervisor doesn't know, None if that can't be checked.
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    undeclared: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    away: Mapping[str, Away] = field(default_factory=dict)
    """Cluster → the first authority's file that doesn't exist yet."""

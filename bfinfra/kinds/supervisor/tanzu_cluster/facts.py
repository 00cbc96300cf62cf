"""What is asked for beside the clusters themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.base.offers import Offer
from bfinfra.model.awaited import Away
from bfinfra.model.records import dataclass


@dataclass(frozen=True)
class TanzuClusterFacts:
    """`offers` by supervisor namespace; `authorities`: path → PEM, "" where it isn't there yet, or why it
    can't be read (`!…`); `ground`: what clusters stand on; `undeclared`: cluster → the fields that its
    supervisor doesn't know, None where it doesn't say.
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
    authorities: Mapping[str, str] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    undeclared: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    away: Mapping[str, Away] = field(default_factory=dict)
    """Cluster → the first file of an authority that isn't there yet."""

"""Warns of a VM to create where no host takes one now."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.backends.vcenter.places import only
from bfinfra.kinds.power import takes_none
from bfinfra.kinds.vcenter.virtual_machine.spec import Spec
from bfinfra.kinds.vcenter.virtual_machine.state import VirtualMachineFacts
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs


def without_hosts(wanted: Specs, states: Specs, facts: VirtualMachineFacts) -> Iterator[Conflict]:
    """One for each VM to create whose hosts are all in maintenance mode, or lost to vCenter. No refusal: a
    run of this site may be what restarts them.
    """
    for key, spec in wanted.items():
        if not isinstance(spec, Spec) or key in states:
            continue
        cluster = only(facts.inventory.cluster(spec.cluster))
        hosts = [
            each
            for each in facts.inventory.hosts
            if cluster and each.cluster == cluster.moid and (spec.host is None or each.is_called(spec.host))
        ]
        if hosts and all(map(takes_none, hosts)):
            yield Conflict(
                Spot(key, "host" if spec.host else "cluster"),
                f"no host of {spec.cluster} takes a VM now",
                why="; ".join(map(takes_none, hosts)),
                next="bring one back first",
                stops=False,
            )

"""The needs of a workload cluster or a machine from its supervisor namespace, as the file has it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from bfinfra.kinds.capabilities import GRAPHICS, hosts, storage, vm_class
from bfinfra.kinds.supervisor.base.pools import InNamespace
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.names import storage_class
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key
from bfinfra.model.suggest import nearest


def conflicts(mine: Mapping[Key, InNamespace], site: Specs) -> Iterator[Conflict]:
    """VM classes and storage classes that its namespace no longer offers, as the file has it: vSphere could
    create no node of them.
    """
    for key, spec in mine.items():
        home = Key("supervisor_namespace", spec.namespace)
        if (space := site.get(home)) is None:
            continue
        sorts = (
            ("vm_classes", "VM class", spec.vm_classes, set(space.vm_classes)),
            ("storage", "storage class", spec.storage, set(map(storage_class, space.storage))),
        )
        for field, what, names, offered in sorts:
            for place, name in names.items() if field in space.model_fields_set else ():
                if name not in offered:
                    yield Conflict(
                        Spot(key, place),
                        f"{home} offers no {what} {name}",
                        (Spot(home, field),),
                        next=_remedy(name, offered, field),
                    )


def requires(spec: InNamespace, site: Specs) -> Iterator[Capability]:
    """The classes of its nodes, and the hosts that they can be on."""
    yield from map(vm_class, spec.vm_classes.values())
    yield from map(storage, spec.storage.values())
    if (home := site.get(Key("supervisor_namespace", spec.namespace))) is not None:
        yield hosts(home.cluster)
    if any(
        found.vgpus or found.device_groups
        for each in spec.vm_classes.values()
        if (found := site.get(Key("vm_class", each))) is not None
    ):
        yield Capability(GRAPHICS)


def _remedy(name: str, offered: Collection[str], field: str) -> str:
    return f"add it to its {field}" + (f"; {near}" if (near := nearest(name, offered)) else "")

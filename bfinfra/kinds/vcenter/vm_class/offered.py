"""vGPU profiles and device groups that no host offers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.vcenter.vm_class.spec import Spec, clusters
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.suggest import few, nearest

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.vgpus import HostOffer


@dataclass(frozen=True)
class VmClassFacts:
    """`hosts`: what each offers, if a class of the site wants vGPUs; `specified`: whether classes of this
    vCenter have a `config_spec`, if a class of the site needs one.
    """

    hosts: Sequence[HostOffer] = field(default=(), repr=False)
    specified: bool = True


def too_new(wanted: Specs, facts: VmClassFacts) -> Iterator[Conflict]:
    """Device groups, and cards of several models, where classes have no `config_spec` yet."""
    for key, spec in wanted.items():
        if key.kind != "vm_class" or facts.specified:
            continue
        if spec.device_groups:
            yield _too_new(Spot(key, "device_groups"), "have no device groups", "write vgpus")
        for index, each in enumerate(spec.devices):
            if each.alternatives:
                at = Spot(key, f"devices.{index}.alternatives")
                yield _too_new(at, "name one model of each card", "write one model")


def _too_new(at: Spot, what: str, instead: str) -> Conflict:
    return Conflict(
        at,
        f"this vCenter's classes {what}",
        why="a class holds that from 8.0.2",
        next=f"{instead}, or update vCenter",
    )


def unoffered(wanted: Specs, states: Specs, facts: VmClassFacts) -> Iterator[Conflict]:
    """Profiles and groups that no host offers of the clusters where the class is used; of any, if no
    namespace of the site offers it. If no host offers any yet, it is a warning, as a driver may be missing;
    not so if a machine is to run with it.
    """
    for key, spec in wanted.items():
        if key.kind != "vm_class" or not (spec.vgpus or spec.device_groups):
            continue
        if spec.device_groups and not facts.specified:
            continue
        for cluster in sorted(clusters(key.name, wanted)) or [""]:
            prepared = _prepared(cluster, wanted, states)
            soon = {"vgpus": prepared, "device_groups": prepared or _passing(cluster, wanted, states)}
            for each in _of(key, spec, cluster, facts, soon):
                still = soon[each.at.field.partition(".")[0]]
                yield each if each.stops or still else replace(each, stops=_runs(key, wanted))


def _runs(key: Key, wanted: Specs) -> bool:
    """Return whether a machine or a node of this class is to run."""
    return any(
        need.least and need.vm_class == key.name
        for other, spec in wanted.items()
        if hasattr(spec, "needs")
        for need in spec.needs(other)
    )


def _of(
    key: Key, spec: Spec, cluster: str, facts: VmClassFacts, soon: Mapping[str, bool]
) -> Iterator[Conflict]:
    """`soon`: by field, whether hosts may offer more once the site has prepared them."""
    there = [each for each in facts.hosts if not cluster or each.cluster == cluster]
    where = f"of the cluster {cluster}" if cluster else "of this vCenter"
    sorts = (
        ("vgpus", "vGPU profile", spec.vgpus, {p for host in there for p in host.profiles}),
        ("device_groups", "device group", spec.device_groups, {g for host in there for g in host.groups}),
    )
    for field_, what, names, offered in sorts:
        for index, name in enumerate(names):
            if name in offered or (soon[field_] and not offered) or not there:
                continue
            if offered:
                yield Conflict(
                    Spot(key, f"{field_}.{index}"),
                    f"no host {where} offers the {what} {name}",
                    why=f"they offer {few(sorted(offered))}",
                    next=nearest(name, offered) or "choose one of these",
                    stops=not soon[field_],
                )
            else:
                yield Conflict(
                    Spot(key, f"{field_}.{index}"),
                    f"no host {where} offers a {what} yet",
                    why="hosts offer them once they have the driver and the graphics type sharedDirect",
                    next="add a host_image with the driver, and host_graphics",
                    stops=False,
                )


def _prepared(cluster: str, wanted: Specs, states: Specs) -> bool:
    """Return whether the site still has to change the driver or the graphics of the cluster's hosts."""
    return any(
        (key.kind == "host_graphics" and not _shared(states.get(key), spec))
        or (key.kind == "host_image" and cluster in ("", spec.cluster) and not _driven(states.get(key), spec))
        for key, spec in wanted.items()
    )


def _passing(cluster: str, wanted: Specs, states: Specs) -> bool:
    """Return whether the site still has to pass cards of the cluster's hosts through: device groups with
    network cards are offered only then.
    """
    return any(
        key.kind == "gpu_host" and spec.cluster in (cluster, None) and not _passed(states.get(key), spec)
        for key, spec in wanted.items()
    )


def _passed(state: Any, spec: Any) -> bool:
    """Return whether the host passes all cards of the file through."""
    active = [each for each in state.detail.devices if each.active] if state else []
    models, addresses = (
        Counter((each.vendor, each.device) for each in active),
        {each.address for each in active},
    )
    return all(
        each.address in addresses if each.address else models[each.vendor, each.device] >= each.count
        for each in spec.passthrough
    )


def _shared(state: Any, spec: Any) -> bool:
    """Return whether the hosts have the type of graphics of the file already."""
    there = [state.at((host, "type")) for host in spec.hosts] if state else [None]
    return all(each is not None and each.now == spec.type for each in there)


def _driven(state: Any, spec: Any) -> bool:
    """Return whether the image has the components of the file already, and every host of it."""
    return state is not None and all(
        dict(spec.components).items() <= dict(each.components).items() for each in (state, *state.hosts)
    )

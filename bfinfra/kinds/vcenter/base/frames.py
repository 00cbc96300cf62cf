"""Whether VMkernel adapters fit their switch: its frames, and its hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfinfra.backends.vcenter.networks import Switch
from bfinfra.model import compare
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec


def unfit_as_written(key: Key, mtu: int, group: str, site: Specs) -> Iterator[Conflict]:
    """An `mtu` that is larger than the one that the site writes for the switch of a port group."""
    home = _home(group, site)
    if _writes(site, home) and mtu > site[home].mtu:
        yield _too_large(key, mtu, site[home].mtu, "", (Spot(home, "mtu"),))


def unfit(key: Key, mtu: int, group: str, site: Specs, found: Mapping[str, Switch]) -> Iterator[Conflict]:
    """An `mtu` that is larger than the one that the switch of a port group has then, where the site doesn't
    write that. `found`: the switches as they stand, by port group.
    """
    home, on = _home(group, site), found.get(group)
    switch = site.get(home)
    if _writes(site, home):
        return
    if on and (switch is None or not sets(switch, Mark.decode(on.description))):
        most, why = on.mtu, f"the mtu of {on.name}, as it stands"
    else:
        most, why = switch.mtu if switch else mtu, f"{home} writes no mtu, and gets the default"
    if mtu > most:
        yield _too_large(key, mtu, most, why, (Spot(home),) if switch else ())


def sets(spec: Spec, mark: Mark | None) -> bool:
    """Whether an apply sets the mtu of what is there, if it differs."""
    return bool(compare.drift(spec, mark, {"mtu": None}, {"mtu": getattr(spec, "mtu", None) or 0}))


def off_the_switch(
    key: Key, hosts: Mapping[str, str], group: str, site: Specs, found: Mapping[str, Switch]
) -> Iterator[Conflict]:
    """Hosts that will not be on the switch of a port group. `hosts`: name → id, of those that get an adapter
    there; `found`: the switches as they stand, by port group.
    """
    home, on = _home(group, site), found.get(group)
    switch = site.get(home)
    written = switch.hosts if switch and "hosts" in switch.model_fields_set else None
    for host, moid in hosts.items():
        if host in written if written is not None else moid in on.hosts if on else switch is None:
            continue
        named = on.name if on else home.name
        yield Conflict(
            Spot(key, f"hosts.{host}"),
            f"{host} is not on the switch {named}",
            (Spot(home, "hosts"),) if written is not None else (),
            why=f"the port group {group} is on that switch",
            next=f"add {host} to the hosts of {home if switch else named}, or leave it out here",
        )


def _home(group: str, site: Specs) -> Key:
    """The switch of a port group, if the site describes both."""
    spec = site.get(Key("port_group", group))
    return Key("distributed_switch", spec.switch if spec else "")


def _writes(site: Specs, home: Key) -> bool:
    return home in site and "mtu" in site[home].model_fields_set


def _too_large(key: Key, mtu: int, most: int, why: str, others: tuple[Spot, ...]) -> Conflict:
    return Conflict(
        Spot(key, "mtu"),
        f"frames of {mtu} bytes don't pass a switch of {most}",
        others,
        why=why,
        next="raise the switch's mtu, or lower this one",
    )

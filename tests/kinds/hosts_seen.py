"""Hosts as a vCenter shows them, for the checks of the kinds that name some."""

from __future__ import annotations

from types import SimpleNamespace

from bfinfra.backends.vcenter.esxi_settings import HostSetup
from bfinfra.model.refs import Key

SETUP = HostSetup(
    ("ntp.example.com",),
    True,
    "R740",
    "13006603",
    frozenset({"0000:3b:00.0 15b3:1015"}),
    "sharedDirect",
    "2.19.1",
)
VIBS = frozenset({"esx-base 8.0.3", "nmlx5-core 4.23"})


def findings(check, setups, vibs=None, **specs):
    """What a check says of a site with these specs, on hosts that are set up so."""
    asked = SimpleNamespace(
        inventory=SimpleNamespace(
            read=lambda: SimpleNamespace(
                hosts=[SimpleNamespace(name=name, moid=f"host-{name}") for name in setups]
            )
        ),
        host_settings=SimpleNamespace(
            setups=lambda moids: {moid: setups[moid.removeprefix("host-")] for moid in moids},
            packages=lambda moids: installed(vibs or {}),
        ),
    )
    context = SimpleNamespace(
        entered=lambda: asked, of=lambda kind: {Key(kind, "x"): specs[kind]} if kind in specs else {}
    )
    return [(found.health, f"{found.about}: {found.what}: {found.why}") for found in check(context)]


def installed(vibs):
    if not isinstance(vibs, dict):
        raise vibs
    return {f"host-{name}": found for name, found in vibs.items()}

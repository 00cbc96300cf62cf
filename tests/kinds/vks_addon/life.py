"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

from bfinfra.model.rights import Use

OBJECTS = ("addonconfigs", "addoninstalls")
LIFE = Life(
    changes=((", values: {arguments: {expander: least-waste}}", ""), ("cpu: {count: 1", "cpu: {count: 2")),
    reads_inside=True,
    # they go with their cluster, which the example's site has, too
    unused=tuple((Use.DESTROY, f"delete {each}.addons.kubernetes.vmware.com") for each in OBJECTS),
)

"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(changes=(("mtu: 9000", "mtu: 1500"),))
VARIANTS = {
    "distributed_switch without hosts": Life(
        example=(("\n    hosts: {esx1.small.test: [vmnic1], esx2.small.test: [vmnic1]}", ""),),
        changes=LIFE.changes,
    )
}

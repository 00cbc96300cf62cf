"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(changes=(("{hosts:", "{mtu: 9000, hosts:"), ("vlan: 31", "vlan: 32")))

"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(changes=(("cpu: {count: 1", "cpu: {count: 2"),), reads_inside=True)

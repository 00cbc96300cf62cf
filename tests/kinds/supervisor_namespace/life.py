"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(changes=(("memory: 64GiB", "memory: 32GiB"),), reads_inside=True)

"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(changes=(("workers: {count: 1", "workers: {count: 2"),), reads_inside=True)

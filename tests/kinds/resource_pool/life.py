"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(changes=(("shares: high", "shares: low"), ("    parent: gpu\n", "")))

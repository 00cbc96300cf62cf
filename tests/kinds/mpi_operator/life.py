"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(
    changes=(("namespace: default", "namespace: default, image: registry.small.test/mpi-operator:0.8.0"),),
    reads_inside=True,
)

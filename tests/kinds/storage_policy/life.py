"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life

LIFE = Life(
    changes=(
        (
            "tags: {tier: [fast]}",
            "tags: {tier: [fast]}\n    tag: {category: bfinfra, name: bf-k8s, datastores: [shared]}",
        ),
    )
)

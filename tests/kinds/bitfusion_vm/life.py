"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life
from rights.others import add_disk_to_template, turn_template_into_vm

LIFE = Life(
    prepare=add_disk_to_template,
    changes=(
        (
            "cpus: 4, memory: 16GiB, adapters: [{network: VM Network}]",
            "cpus: 6, disk: 200GiB, memory: 32GiB, reserve: true, adapters: [{network: Storage Network}]",
        ),
    ),
    drifts=(turn_template_into_vm,),
)

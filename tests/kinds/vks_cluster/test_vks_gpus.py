"""The GPUs of a cluster's workers, as other kinds count them from the file."""

from __future__ import annotations

from pathlib import Path

import yaml
from kinds.lifecycle import SPECS

import bfinfra
from bfinfra.kinds.class_gpus import told_by_file
from bfinfra.kinds.cluster.mpi_job.nodes import gpus_of_workers
from bfinfra.model.refs import Key


def test_a_pool_counts_with_the_gpus_of_its_class_as_often_as_it_may_have_nodes(tmp_path: Path) -> None:
    given = yaml.safe_load((SPECS / "vks-gpu.yaml").read_text())
    given["vm_class"]["guaranteed-large"] = {"cpus": 4, "memory": "16GiB"}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
    (tmp_path / "ca.pem").touch()
    site = bfinfra.load(tmp_path / "site.yaml").resources
    assert gpus_of_workers(Key("vks_cluster", "ml-01"), site, lambda name: told_by_file(name, site)) == (
        0,
        0,
        0,
        1,
        1,
        1,
        1,
    )

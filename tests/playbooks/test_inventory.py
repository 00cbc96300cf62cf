"""The inventory of a site, as ansible-inventory reads it: what the file says, and what the world says of a
cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bfinfra import worlds
from bfinfra.sandbox import SMALL_WORLD, Running

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
CLUSTER = """\
site: mixed
kubernetes_cluster: {other: {kubeconfig: {file: other.kubeconfig}}, cpu-01: {kubeconfig: {file: other.kubeconfig}}}
linux_host: {cpu-01: {address: 10.5.0.11, port: 2222, user: ubuntu, key: {file: ssh/id_ed25519}, trust: {known_hosts: ssh/known_hosts}}}
"""


def listed(folder: Path, **files: str) -> dict[str, Any]:
    """What `ansible-inventory --list` says of these inventories."""
    words = []
    for name, text in files.items():
        file = folder / f"{name}.bfinfra_inventory.yaml"
        file.write_text(f"plugin: bfinfra.core.site\n{text}")
        words += ["-i", str(file)]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-inventory")), *words, "--list"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks"),
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True",
        },
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(
        done.stdout, object_hook=lambda each: each.get("__ansible_unsafe", each)
    )
    return found


def test_servers_machines_clients_and_clusters_are_in_their_groups(
    sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    worlds.state(SMALL_WORLD).parent.mkdir(parents=True)
    worlds.state(SMALL_WORLD).symlink_to(sandbox.state)
    (tmp_path / "mixed.yaml").write_text(CLUSTER)
    found = listed(
        tmp_path,
        guide=f"site: [{ROOT}/specs/flexdirect.yaml]\nlook: false\n",
        poc=f"site: [{ROOT}/specs/singapore-poc.yaml]\nlook: false\n",
        mixed=(
            f"site: [mixed.yaml]\nworld: {SMALL_WORLD}\nkeyed_groups: [{{key: bfinfra_site, prefix: of}}]\n"
        ),
    )
    hosts = found["_meta"]["hostvars"]
    assert found["flexdirect"]["children"] == ["linux_host", "flexdirect_host", "flexdirect_pool"]
    assert set(found["flexdirect_pool"]["hosts"]) == {"node-1", "node-2"}
    assert (hosts["node-1"]["ansible_host"], hosts["node-1"]["ansible_user"]) == ("10.168.1.11", "ubuntu")
    assert (
        found["bitfusion_server"]["hosts"],
        hosts["bf-01"]["ansible_host"],
        hosts["bf-01"]["bfinfra_site"],
    ) == (["bf-01"], "172.24.210.80", "singapore-poc")
    assert hosts["bf-01"]["bfinfra_fields"]["properties"]["customer_password"] == {
        "env": "BITFUSION_CUSTOMER_PASSWORD"
    }, "secrets are references"
    assert (hosts["other"]["ansible_host"], hosts["other"]["ansible_port"]) == ("10.3.0.1", 6443)
    assert (
        set(found["kubernetes_cluster"]["hosts"])
        == {"other", "kubernetes_cluster.cpu-01"}
        < set(found["of_mixed"]["hosts"])
    )
    assert hosts["linux_host.cpu-01"]["ansible_port"] == 2222
    assert sandbox.tally()["written"] == 0

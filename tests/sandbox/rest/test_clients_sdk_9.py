"""What bfinfra and the sandbox say to each other over REST from vSphere 9.0 on, judged by the official SDK's own
table of operations.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from kinds.lifecycle import EXAMPLES
from recorder import Recorder, run

from bfinfra.sandbox import Running
from bfinfra.testing import world

WORLD_9 = Path(__file__).parents[2] / "kinds/vcenter-9.yaml"


@world(WORLD_9)
def test_every_message_in_the_life_of_a_namespace_with_zones_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    site = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text())
    team = {"cluster": "compute", "vm_classes": ["best-effort-small"], "zones": ["zone-1", "zone-2"]}
    site["supervisor_namespace"] = {"team-a": {**team, "reserved": {"best-effort-small": 4}}}
    run(site, tmp_path, sandbox, recorder)
    site["supervisor_namespace"]["team-a"]["zones"] = ["zone-1"]
    run(site, tmp_path, sandbox, recorder)
    run(site, tmp_path, sandbox, recorder, destroy=True)
    instances, supervisors = "/vcenter/namespaces/instances", "/vcenter/namespace-management/supervisors"
    assert recorder.seen() >= {
        f"POST {instances}/v2",
        f"GET {instances}/v2/{{namespace}}",
        f"PATCH {instances}/{{namespace}}",
        f"DELETE {instances}/{{namespace}}/zones/{{zone}}",
        f"GET {supervisors}/summaries",
        f"GET {supervisors}/{{supervisor}}/topology",
    }

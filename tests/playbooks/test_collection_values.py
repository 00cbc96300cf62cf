"""What a site or a server says reaches a user's playbook as text, from the inventory and from modules, on each version
of Ansible. bfinfra itself is stood in for: it says the worst that a site or a vCenter could.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from ansible_versions import VERSIONS, program
from bad_input import corpus

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
BFINFRA = """
import json, pathlib, sys
from types import SimpleNamespace
HERE = pathlib.Path(__file__).parent
VALUES = json.loads((HERE / "values.json").read_text())
class BfinfraError(Exception): pass
class Key(SimpleNamespace):
    __hash__ = object.__hash__
    def __str__(self): return f"{self.kind}/{self.name}"
class Spec(SimpleNamespace):
    hosts = ()
    def applied(self): return self.fields
def load(*files, **how):
    if "ansible.plugins.inventory" not in sys.modules: raise BfinfraError("\\n".join(VALUES.values()))
    keys = {Key(kind="linux_host", name=name): Spec(fields={"text": text, "list": [text]}, user=text)
            for name, text in VALUES.items()}
    return SimpleNamespace(name="site", resources=keys)
def addresses(site, **how): return {key: spec.user if spec.user.count(":") != 1 else "x" for key, spec in site.resources.items()}
def as_data(error): return {"problems": [{"what": str(error)}]}
class RunContext(SimpleNamespace): pass
"""
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  vars:
    every: "{{ groups.linux_host | map('extract', hostvars) }}"
  tasks:
    - name: variables
      ansible.builtin.copy:
        content: "{{ [every | map(attribute='bfinfra_fields'), every | map(attribute='ansible_host')] | to_json }}"
        dest: "{{ out }}/variables"
    - name: a variable
      ansible.builtin.copy: {content: "{{ hostvars.jinja_lookup.composed }}", dest: "{{ out }}/composed"}
    - name: a refusal
      bfinfra.core.validate: {site: site.yaml}
      register: found
      failed_when: false
    - name: words of a module
      ansible.builtin.copy: {content: "{{ found.msg }}", dest: "{{ out }}/msg"}
    - name: words of a module, nested
      ansible.builtin.copy: {content: "{{ found.problems[0].what }}", dest: "{{ out }}/problem"}
- hosts: jinja_lookup
  gather_facts: false
  connection: local
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  tasks:
    - name: its own
      ansible.builtin.copy: {content: "{{ bfinfra_fields.list[0] }}", dest: "{{ out }}/own"}
"""


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_users_playbook_gets_text_and_no_template(version: str, cached: bool, tmp_path: Path) -> None:
    canary, out = tmp_path / "canary", tmp_path / "out"
    out.mkdir()
    left_out = (*corpus.NUL, *corpus.UNENCODABLE, *corpus.LONG)
    values = {
        name.replace(" ", "_"): text for name, text in corpus.values(canary).items() if name not in left_out
    }
    (tmp_path / "bfinfra.py").write_text(BFINFRA)
    (tmp_path / "values.json").write_text(json.dumps(values))
    (tmp_path / "play.yaml").write_text(PLAYBOOK)
    (tmp_path / "a.bfinfra_inventory.yaml").write_text(
        f"plugin: bfinfra.core.site\nsite: [site.yaml]\ncache: {cached}\ncache_plugin: jsonfile\n"
        f"cache_connection: {tmp_path}/kept\nkeyed_groups: [{{key: bfinfra_fields.text, prefix: on}}]\n"
        "compose: {composed: bfinfra_fields.text}\n"
    )
    for _ in range(1 + cached):
        done = _played(version, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert corpus.ran(canary) == []
        fields, hosts = json.loads((out / "variables").read_text())
        assert (
            [each["text"] for each in fields] == [each["list"][0] for each in fields] == list(values.values())
        )
        assert {text for text in values.values() if text.count(":") != 1} <= set(hosts)
        assert (out / "own").read_text() == (out / "composed").read_text() == values["jinja_lookup"]
        assert (
            (out / "msg").read_bytes()
            == (out / "problem").read_bytes()
            == "\n".join(values.values()).encode()
        )


def _played(version: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            program(version, "ansible-playbook"),
            "-i",
            "a.bfinfra_inventory.yaml",
            "-e",
            f"out={folder}/out",
            "play.yaml",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks"),
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "True",
            "ANSIBLE_HOME": str(folder / "home"),
        },
    )

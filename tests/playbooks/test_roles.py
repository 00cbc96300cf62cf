"""Every task of every role keeps a value data; a role that is added is held to the same by existing."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from peers.role_cases import CASES
from playbooks.role_rules import complaints, tasks, used

from bfinfra.backends.ansible.play import ROLES

FILES = sorted(ROLES.glob("*/tasks/*.yml"))


def task(text: str) -> Any:
    return yaml.safe_load(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_a_task_keeps_values_data(path):
    found = {each.get("name", str(each)): list(complaints(each)) for each in tasks(path)}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_a_role_has_nothing_but_tasks_and_constants():
    rest = {path for path in ROLES.rglob("*") if path.is_file()} - set(FILES)
    assert [str(path.relative_to(ROLES)) for path in rest] == ["packages/vars/main.yml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_each_variable_of_a_role_is_tried_with_every_value(path, tmp_path):
    (file := tmp_path / "file").touch()
    role = path.parts[-3]
    cases = [make("v", "s", file) for (each, _, _), make in CASES.items() if each == role]
    tried = {name for case in cases for name in case.variables}
    tried |= {"bfinfra_secrets"} if any(case.texts for case in cases) else set()
    assert cases, f"{role} has no case in peers/role_cases.py"
    assert used(path) <= tried


WRONG = {
    "ansible.builtin.shell: {cmd: 'echo {{ text }}'}": "shell",
    "ansible.builtin.template: {src: '{{ source }}', dest: /x}": "template",
    "ansible.builtin.set_fact: {x: '{{ text }}'}": "set_fact",
    "{ansible.builtin.command: {argv: [cat, /x]}, delegate_to: localhost}": "delegate_to",
    "ansible.builtin.command: cat /x": "arguments are a mapping",
    "ansible.builtin.command: {cmd: 'cat {{ path }}', expand_argument_vars: false}": "not by argv",
    "ansible.builtin.command: {argv: [cat, '{{ path }}']}": "expand_argument_vars",
    "ansible.builtin.command: {argv: [cat], stdin: x}": "stdin_add_newline",
    "ansible.builtin.command: {argv: [cat, '{{ text }}'], expand_argument_vars: false}": "may begin with a dash",
    "ansible.builtin.command: {argv: ['{{ text }}'], expand_argument_vars: false}": "names the program",
    "ansible.builtin.command: {argv: [sh, -c, '{{ text }}'], expand_argument_vars: false}": "a shell reads",
    "ansible.builtin.command: {argv: \"{{ ['cat'] + [text] }}\", expand_argument_vars: false}": "may begin with a dash",
    "ansible.builtin.command: {argv: \"{{ ['cat'] + names }}\", expand_argument_vars: false}": "no -- stands before",
    "ansible.builtin.copy: {content: '{{ text }}', dest: /x}": "decrypt",
    "ansible.builtin.copy: {src: '{{ package }}', dest: /x, decrypt: false}": "no file that was handed over",
    "ansible.builtin.copy: {src: '{{ source }}', dest: '/x/{{ text }}', decrypt: false}": "checked nowhere as a path",
    "ansible.builtin.copy: {content: a, dest: '{{ item.path }}', owner: '{{ item.name }}', decrypt: false}": "another user's",
    "ansible.builtin.file: {path: '{{ item.path }}', owner: '{{ item.name }}', state: directory}": "follows a link",
    "{ansible.builtin.file: {path: '{{ item }}', state: absent}, loop: '{{ names }}'}": "names is checked nowhere",
    "ansible.builtin.copy: {content: '{{ bfinfra_secrets.x }}', dest: /x, decrypt: false}": "without no_log",
    "ansible.builtin.copy: {content: \"{{ lookup('env', 'X') }}\", dest: /x, decrypt: false}": "uses lookup",
    "{ansible.builtin.command: {argv: [cat]}, when: \"query('pipe', 'id') != ''\"}": "uses query",
    "ansible.builtin.copy: {content: '{{ hostvars }}', dest: /x, decrypt: false}": "uses hostvars",
    "{ansible.builtin.command: {argv: [cat]}, environment: {X: '{{ text }}'}}": "environment",
}  # fmt: skip


@pytest.mark.parametrize(("text", "wrong"), WRONG.items())
def test_a_task_that_does_not_is_named(text, wrong):
    assert any(wrong in each for each in complaints(task(text))), list(complaints(task(text)))

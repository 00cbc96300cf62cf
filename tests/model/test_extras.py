"""What was not installed is reported with the command that installs it."""

from __future__ import annotations

import importlib
import sys

import pytest

import bfinfra
from bfinfra.cli import main
from bfinfra.model.errors import BfinfraError
from bfinfra.sandbox.linux import machines
from bfinfra.sandbox.reading import BadWorld


def test_a_linux_machine_without_ansible_says_which_extra_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ansible_runner", None)
    monkeypatch.delitem(sys.modules, "bfinfra.backends.ansible.play", raising=False)
    with pytest.raises(BfinfraError) as found:
        importlib.import_module("bfinfra.backends.ansible.play")
    problem = found.value.problems[0]
    assert problem.what == "what is changed on a Linux machine needs bfinfra[linux]"
    assert problem.next == 'pip install "bfinfra[linux]"'


def test_a_sandbox_with_linux_machines_says_which_extra_it_needs(monkeypatch):
    monkeypatch.setattr(machines, "find_spec", lambda name: None)
    world = machines.LinuxMachines.__new__(machines.LinuxMachines)
    world._written = {"gpu-01": None}
    with pytest.raises(BadWorld, match=r'pip install "bfinfra\[sandbox\]"'):
        world.open()


def test_the_operator_says_which_extra_it_needs(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "bfinfra.operator.running", None)
    assert main(["operator", "run"]) == 1
    assert 'pip install "bfinfra[operator]"' in capsys.readouterr().err


def test_the_library_lists_its_names():
    assert set(bfinfra.__all__) <= set(dir(bfinfra))

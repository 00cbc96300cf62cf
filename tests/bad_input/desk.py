"""Runs the command line on a test's own sandbox, and proves that what was refused wrote nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import QUICK, world

import bfinfra
from bfinfra import worlds
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.vm import Hardware
from bfinfra.cli import main
from bfinfra.kinds.vcenter.bitfusion_server.state import MARK, OVA, SECRETS
from bfinfra.sandbox import SMALL_WORLD, Running

EVERYTHING = ("--yes", "--allow-delete", "all", "--allow-disruption", "all")
HEAD = """\
site: example
vcenter:
  server: vc.small.test
  username: admin@small.test
  password: {env: VCENTER_PASSWORD}
  trust: {ca_file: ca.pem}
"""
NAMESPACE = """\
supervisor_namespace:
  team-a:
    cluster: compute
    storage: {gold: 100GiB}
    vm_classes: [best-effort-small]
"""
CLUSTER = """\
tanzu_cluster:
  cluster-01:
    namespace: team-a
    version: v1.20.2
    control_plane: {count: 1, vm_class: best-effort-small, storage_class: gold}
    workers: {workers: {count: 1, vm_class: best-effort-small, storage_class: gold}}
"""
HOST = """\
gpu_host:
  esx1.small.test:
    passthrough: [{vendor: 0x10de, device: 0x1eb8}]
    reboot: if_needed
"""
SERVER = """\
bitfusion_server:
  bf-01:
    ova: {file: server.ova}
    host: esx1.small.test
    gpus: 1
    networks:
      Network 1: {network: VM Network, address: 10.2.0.5/24, gateway: 10.2.0.1}
    properties:
      hostname: bf-01.small.test
      customer_password: {env: VCENTER_PASSWORD}
      vcenter_username: admin@small.test
      vcenter_password: {env: VCENTER_PASSWORD}
"""


def but(text: str, *changes: tuple[str, str]) -> str:
    """The text with each piece changed; every piece must stand in it."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


@dataclass(frozen=True)
class Found:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Desk:
    """Where an operator sits: a folder with the site, a terminal, the sandbox."""

    folder: Path
    sandbox: Running
    read: Callable[[], tuple[str, str]]

    def write(self, text: str, name: str = "site.yaml") -> Path:
        """A file in the folder."""
        (self.folder / name).write_text(text)
        return self.folder / name

    def run(self, verb: str, text: str, *more: str, options: tuple[str, ...] = EVERYTHING) -> Found:
        """One command on a site with this text."""
        given = options if verb in ("apply", "destroy", "adopt") else ()
        code = main([verb, "--sandbox", "--world", str(SMALL_WORLD), *given, str(self.write(text)), *more])
        return Found(code, *self.read())

    def made(self, text: str) -> None:
        """Apply what is right."""
        found = self.run("apply", text)
        assert found.code == 0, found

    def refuses(
        self,
        text: str,
        *says: str,
        verb: str = "apply",
        more: tuple[str, ...] = (),
        options: tuple[str, ...] = EVERYTHING,
    ) -> str:
        """The command ends with 1, says all this, and nothing was written; what it printed as errors."""
        before = world(self.sandbox)
        self.sandbox.clear_tally()
        found = self.run(verb, text, *more, options=options)
        assert found.code == 1, found
        assert self.sandbox.tally()["written"] == 0, self.sandbox.tally()["writes"]
        assert world(self.sandbox).splitlines() == before.splitlines()
        lacking = [each for each in says if each not in found.err]
        assert not lacking, (lacking, found.err)
        assert "Traceback" not in found.err
        assert "this should not happen" not in found.err
        return found.err


def unmark(desk: Desk, text: str) -> None:
    """Take every note of bfinfra's off the one server of a site, as if somebody had made the VM by hand."""
    transport = Transport(route=desk.sandbox.lookup)
    settings = bfinfra.load(desk.write(text), sandbox=desk.sandbox).vcenter
    assert settings is not None
    vcenter = VCenter(settings, transport)
    try:
        (found,) = (brief for brief in vcenter.machines.survey(MARK) if brief.mark)
        vcenter.machines.reconfigure(found.moid, Hardware(extra=dict.fromkeys((MARK, SECRETS, OVA), "")))
    finally:
        vcenter.close()
        transport.close()


@pytest.fixture
def desk(
    sandbox: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    """The command line with `--sandbox` finds the test's own sandbox; retries take no time."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("NO_COLOR", "1")
    state = worlds.state(SMALL_WORLD)
    state.parent.mkdir(parents=True)
    state.symlink_to(sandbox.state)
    context = bfinfra.RunContext

    def hasty(**given: Any) -> bfinfra.RunContext:
        made = context(**given)
        return replace(made, retry=replace(QUICK, halt=made.retry.halt))

    monkeypatch.setattr("bfinfra.app.context.RunContext", hasty)
    folder = tmp_path / "site"
    folder.mkdir()
    return Desk(folder, sandbox, lambda: tuple(capsys.readouterr()))

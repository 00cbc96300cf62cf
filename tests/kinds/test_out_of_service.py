"""A run that does not finish says what is off or in maintenance mode now: for every kind with a step that stops,
restarts or lets something enter maintenance mode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, by_ansible, endings, made

import bfinfra
import bfinfra.kinds as registry
from bfinfra.backends.vcenter import VCenter
from bfinfra.engine.out_of_service import can_be_out
from bfinfra.kinds import names
from bfinfra.kinds.machine.base import OnHosts
from bfinfra.kinds.vcenter.host_image.steps import Remediate
from bfinfra.model.errors import Rejected, Unreachable
from bfinfra.model.outcome import Outcome
from bfinfra.model.step import Disruption, Step
from bfinfra.render import data, markdown, plan_page, summary

STOPS = (Disruption.REBOOT, Disruption.POWER_CYCLE)
DISRUPTING = [
    name for name in names() if any(step.disruption in STOPS for step in registry.kind(name).step_types)
]
CHANGES: dict[str, dict[str, Any]] = {
    "virtual_machine": {"cpus": 6},
    "bitfusion_server": {"cpus": 8},
    "bitfusion_vm": {"settings": {"example.bitfusion.client": "false"}},
    "gpu_host": {},
    "host_image": {},
    "service_vm": {"vm_class": "guaranteed-small"},
}
"""What makes the kind stop its example; nothing where making it does."""
SAYS = {
    "virtual_machine": "virtual_machine/sckubw01 is off; left to do: reconfigure VM sckubw01, power on sckubw01",
    "bitfusion_server": "bitfusion_server/bf-01 is off; left to do: reconfigure VM bf-01, power on bf-01",
    "bitfusion_vm": "bitfusion_vm/desk is on the VM desk, which is off; left to do: set what Bitfusion needs of desk",
    "gpu_host": "gpu_host/esx1.small.test is in maintenance mode; left to do: take host esx1.small.test out of",
    "host_image": "host_image/gpu has esx1.small.test in maintenance mode; left to do: install the image of farm on",
    "service_vm": "service_vm/dl-01 is off; left to do: ",
}


def test_every_kind_that_stops_something_can_say_that_it_is_stopped() -> None:
    assert [name for name in DISRUPTING if not can_be_out(registry.kind(name).State)] == []
    assert {*CHANGES} == {name for name in DISRUPTING if not by_ansible(name)}
    assert all(issubclass(registry.kind(name).State, OnHosts) for name in DISRUPTING if by_ansible(name))


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """From then on each step after one that stops something is refused. `then` is called before that, or
    after it was stopped (`at_once`).
    """

    def begin(sandbox: Any, then: Callable[[], None] = lambda: None, *, at_once: bool = False) -> None:
        stopped: list[Step] = []
        for name in names():
            kind = registry.kind(name)

            def run(self: Any, step: Step, report: Any, own: Any = kind.run) -> None:
                if isinstance(step, Remediate):
                    _enter_maintenance(sandbox, step.moids[0])
                    stopped.append(step)
                if stopped:
                    then()
                    raise Rejected("refused by the test")
                own(self, step, report)
                if step.disruption in STOPS:
                    stopped.append(step)
                    if at_once:
                        then()

            monkeypatch.setattr(kind, "run", run)

    return begin


def _enter_maintenance(sandbox: Any, moid: str) -> None:
    site = bfinfra.load(EXAMPLES["gpu_host"], sandbox=sandbox)
    assert site.vcenter
    vcenter = VCenter(site.vcenter, bfinfra.RunContext(sandbox=sandbox).transport(read_only=False))
    try:
        vcenter.hosts.enter_maintenance(moid)
    finally:
        vcenter.close()


def changed(kind: str, sandbox: Any, tmp_path: Path) -> Path:
    """The kind's example, made, and changed so that it has to be stopped."""
    text = re.sub(r"(0x[0-9a-f]{4})", r'"\1"', EXAMPLES[kind].read_text())
    site, path = yaml.safe_load(text), tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    if CHANGES[kind]:
        first = apply(path, sandbox)
        assert made(first), endings(first)
        next(iter(site[kind].values())).update(CHANGES[kind])
        path.write_text(yaml.safe_dump(site))
    return path


def everywhere(outcome: Outcome, path: Path, sandbox: Any) -> list[str]:
    site = bfinfra.load(path, sandbox=sandbox)
    return [
        summary.outcome(outcome),
        json.dumps(data.outcome(outcome)),
        markdown.outcome(outcome).replace("\\", ""),
        plan_page.outcome(outcome, [], site.resources, {}),
    ]


@pytest.mark.thorough("virtual_machine", "gpu_host")
@pytest.mark.parametrize("kind", CHANGES)
def test_a_refusal_after_something_was_stopped_says_what_is_off_now(
    kind: str, sandbox: Any, tmp_path: Path, refused: Callable[..., None]
) -> None:
    path = changed(kind, sandbox, tmp_path)
    refused(sandbox)
    outcome = apply(path, sandbox)
    assert outcome.ending == "failed"
    words = [str(each) for each in outcome.out_of_service]
    assert any(each.startswith(SAYS[kind]) for each in words), words
    how = SAYS[kind].partition(";")[0].partition(" ")[2]
    for text in everywhere(outcome, path, sandbox):
        assert how in text, text


NO_WAY_BACK = {
    "gpu_host.Reboot": "a restart ends by itself",
    "gpu_host.ShutDown": "its host is in maintenance mode; the server's own apply starts it, and the end of the run says so",
    "host_image.Remediate": "vCenter restarts the hosts, and ends maintenance mode",
    "bitfusion_vm.SetFirst": "it stops nothing: the machine is off",
}


@pytest.mark.parametrize("kind", CHANGES)
def test_every_step_that_stops_something_names_its_way_back(kind: str) -> None:
    stops = [step for step in registry.kind(kind).step_types if step.disruption in STOPS]
    assert stops
    without = {f"{kind}.{step.__name__}" for step in stops if step.way_back is Step.way_back}
    assert without == {name for name in NO_WAY_BACK if name.startswith(f"{kind}.")}


@pytest.mark.thorough("virtual_machine", "bitfusion_vm")
@pytest.mark.parametrize("kind", [kind for kind in CHANGES if CHANGES[kind]])
def test_what_was_stopped_for_a_change_that_is_refused_runs_again(
    kind: str, sandbox: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, stopped = changed(kind, sandbox, tmp_path), registry.kind(kind).run, list[Step]()

    def run(self: Any, step: Step, report: Any) -> None:
        if stopped and type(step) is not type(stopped[0].way_back):
            raise Rejected("refused by the test")
        real(self, step, report)
        stopped.extend([step] if step.disruption in STOPS else [])

    monkeypatch.setattr(registry.kind(kind), "run", run)
    outcome = apply(path, sandbox)
    assert stopped
    assert outcome.ending == "failed"
    assert any("as before: " in each for each in endings(outcome).values()), endings(outcome)
    assert outcome.out_of_service == ()


@pytest.mark.parametrize(
    ("at_once", "words"),
    [
        (True, "may be off or in maintenance mode: it can't be read now (no connection"),
        (False, "is off, as it was last read (no connection"),
    ],
)
def test_what_can_not_be_read_any_more_is_said_to_be_so(
    at_once: bool,
    words: str,
    sandbox: Any,
    tmp_path: Path,
    refused: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = registry.kind("virtual_machine")

    def away(*_: Any, **__: Any) -> None:
        raise Unreachable("no connection")

    path = changed("virtual_machine", sandbox, tmp_path)
    refused(sandbox, lambda: monkeypatch.setattr(kind, "observe", away), at_once=at_once)
    (found,) = apply(path, sandbox).out_of_service
    assert found.how.startswith(words)


def test_what_the_file_wants_off_is_not_said_to_be_off(
    sandbox: Any, tmp_path: Path, refused: Callable[..., None]
) -> None:
    path = changed("virtual_machine", sandbox, tmp_path)
    site = yaml.safe_load(path.read_text())
    for each in site["virtual_machine"].values():
        each["power"] = "off"
    path.write_text(yaml.safe_dump(site))
    refused(sandbox)
    outcome = apply(path, sandbox)
    assert (outcome.ending, outcome.out_of_service) == ("failed", ())


def test_a_run_that_finishes_says_nothing_of_the_kind(sandbox: Any, tmp_path: Path) -> None:
    done = apply(changed("virtual_machine", sandbox, tmp_path), sandbox)
    assert (done.ending, done.out_of_service) == ("done", ())
    assert "Out of service" not in summary.outcome(done)


def test_a_machine_that_the_file_wants_off_is_not_called_out_of_service(
    sandbox: Any, tmp_path: Path, refused: Callable[..., None]
) -> None:
    path = changed("virtual_machine", sandbox, tmp_path)
    site = yaml.safe_load(path.read_text())
    machines = site["virtual_machine"]
    machines["off"] = {**next(iter(machines.values())), "cpus": 4, "power": "off"}
    path.write_text(yaml.safe_dump(site))
    refused(sandbox)
    found = apply(path, sandbox)
    assert found.ending == "failed"
    assert ["virtual_machine/off" in str(each) for each in found.out_of_service] == [False], (
        found.out_of_service
    )

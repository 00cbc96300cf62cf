from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, made, plan
from pydantic import ValidationError
from sandbox.asking import Rest

from bfinfra.backends.vcenter import vm_classes
from bfinfra.kinds.vm_class import Create, Delete, Spec, State, Update, VmClass
from bfinfra.model.kind import Around, Change
from bfinfra.model.mark import Mark

MARK = Mark("site", "vm_class/gpu")
GIB = 2**30
CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"


def written(**changes: Any) -> Spec:
    return Spec.model_validate({"cpus": 4, "memory": "16GiB", "memory_reservation": 100, "devices": [{"vendor": "0x10de", "device": "0x1db6"}], **changes})


def steps(spec: Spec | None, state: State | None) -> Any:
    return VmClass.steps("gpu", spec, state, Around(MARK))


def standing(spec: Spec) -> State:
    (step,) = steps(spec, None)
    return State(mark=Mark.decode(step.settings.description), settings=step.settings)


def test_it_is_made_with_its_mark_under_the_users_own_words():
    (step,) = steps(written(description="for training"), None)
    assert isinstance(step, Create)
    assert step.settings.description.splitlines()[0] == "for training"
    assert Mark.decode(step.settings.description) == MARK.seal(written(description="for training").applied())
    assert (step.settings.memory, step.settings.devices) == (16 * GIB, (vm_classes.Device(0x10DE, 0x1DB6),))


def test_what_stands_as_written_is_left_and_what_differs_is_named():
    assert steps(written(), standing(written())) == ()
    (step,) = steps(written(cpus=8), standing(written()))
    assert (type(step), step.changes) == (Update, (Change("cpus", 4, 8),))
    (step,) = steps(None, standing(written()))
    assert isinstance(step, Delete)


def test_what_somebody_changed_is_drift():
    there = standing(written())
    there = State(mark=there.mark, settings=replace(there.settings, memory=8 * GIB))
    (step,) = steps(written(), there)
    assert step.changes == (Change("memory", "8GiB", "16GiB"),)


@pytest.mark.parametrize("changes", [{"memory_reservation": 50}, {"memory": "100MiB"}, {"cpus": 0}, {"memory_reservation": 101}, {"devices": [], "vgpus": ["p"], "memory_reservation": 0}])
def test_what_vcenter_would_refuse_is_an_error_in_the_file(changes):
    with pytest.raises(ValidationError):
        written(**changes)


def test_a_class_and_the_namespace_that_offers_it_come_in_one_apply_and_go_in_their_order(sandbox, tmp_path):
    given = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text())
    given["supervisor_namespace"]["team-a"]["vm_classes"] = ["gpu", "best-effort-small"]
    given["vm_class"] = {"gpu": {"cpus": 4, "memory": "16GiB"}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    rest = Rest(sandbox)
    assert rest.get(f"{CLASSES}/gpu")["namespaces"] == ["team-a"]
    assert rest.call("PATCH", f"{CLASSES}/gpu", {"cpu_count": 2}).status == 204
    (item,) = plan(path, sandbox).pending
    assert [(change.field, change.now, change.wanted) for change in item.changes] == [("cpus", 2, 4)]
    given["supervisor_namespace"]["team-a"]["vm_classes"] = ["best-effort-small"]
    del given["vm_class"]
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    assert [each["id"] for each in rest.get(CLASSES)] == ["best-effort-small", "guaranteed-small"]

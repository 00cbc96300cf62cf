from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, made, plan, run_context, world
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, config_map
from pydantic import ValidationError
from rights.given import supervisor
from sandbox.asking import Rest
from waiting import until

import bfinfra
from bfinfra.kinds.supervisor.supervisor_namespace.spec import Spec
from bfinfra.model.errors import BfinfraError
from bfinfra.sandbox import Running
from bfinfra.testing import world as sandbox_of


def test_a_site_without_tanzu_asks_for_no_more_than_a_list_of_each_kind(sandbox):
    """Lists are needed to find what was deleted from the file."""
    sandbox.tally()
    found = plan(EXAMPLES["gpu_host"], sandbox)
    assert not found.unreadable
    asked = [call for call in sandbox.tally()["calls"]["rest"] if "/session" not in call]
    asked = [re.sub("[0-9a-f]{8}-[0-9a-f-]{27}", "{id}", call) for call in asked]
    assert sorted(asked) == [
        "GET /api/content/library",
        "GET /api/content/library/{id}",
        "GET /api/vcenter/namespace-management/virtual-machine-classes",
        "GET /api/vcenter/namespaces/instances",
        "GET /api/vcenter/storage/policies",
    ]


def accessed(path: Path, access: str) -> Path:
    made = path / "site.yaml"
    made.write_text(EXAMPLES["supervisor_namespace"].read_text() + f"    access: [{access}]\n")
    return made


@pytest.mark.parametrize(
    ("access", "at", "says"),
    [
        (
            "{group: devz@small.test, role: edit}",
            "there is no group devz@small.test",
            "did you mean devs@small.test?",
        ),
        (
            "{user: devz@elsewhere.test, role: edit}",
            "there is no user devz@elsewhere.test",
            "none of vCenter's directories knows it",
        ),
        (
            "{user: devs@small.test, role: edit}",
            "devs@small.test is a group",
            "write: group: devs@small.test",
        ),
    ],
)
def test_access_for_nobody_is_refused_before_the_first_write(sandbox, tmp_path, access, at, says):
    path = accessed(tmp_path, access)
    before, site = world(sandbox), bfinfra.load(path, sandbox=sandbox)
    [problem] = bfinfra.plan(site, context=run_context(sandbox)).problems
    column = len("    access: [{") + access.index(": ") + 2
    assert str(problem).startswith(f"{path}:12:{column}: supervisor_namespace/team-a: {at}")
    assert says in str(problem)
    with pytest.raises(BfinfraError, match=at):
        bfinfra.apply(site, context=run_context(sandbox))
    assert world(sandbox) == before


def test_who_has_access_is_not_asked_for_again(sandbox, tmp_path):
    path = accessed(tmp_path, "{group: Devs@small.test, role: edit}, {user: dev@small.test, role: view}")
    sandbox.tally()
    assert not plan(path, sandbox).problems
    assert sandbox.tally()["calls"]["vcenter"].get("RetrieveUserGroups") == 2


def test_a_directory_that_may_not_be_read_is_reported_and_stops_nothing(sandbox, tmp_path):
    sandbox.faults(
        {"api": "vcenter", "method": "RetrieveUserGroups", "nth": 1, "do": {"soap": "NoPermission"}}
    )
    found = plan(accessed(tmp_path, "{group: devz@small.test, role: edit}"), sandbox)
    assert not found.problems
    [warning] = found.warnings
    assert "vCenter doesn't say whether there is a group devz@small.test" in str(warning)


ZONED = {"cluster": "compute", "vm_classes": ["best-effort-small"], "zones": ["zone-1"]}
RESERVED = {"best-effort-small": 4, "guaranteed-small": 2}
WORLD_9 = Path(__file__).parents[1] / "vcenter-9.yaml"


def zoned(path: Path, **fields: object) -> Path:
    site = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text())
    site["supervisor_namespace"] = {"team-a": {**ZONED, **fields}}
    made = path / "site.yaml"
    made.write_text(yaml.safe_dump(site))
    return made


@sandbox_of(WORLD_9)
def test_zones_and_reservations_come_drift_and_change(sandbox, tmp_path):
    assert made(apply(zoned(tmp_path, reserved={"best-effort-small": 4}), sandbox))
    found = plan(tmp_path / "site.yaml", sandbox)
    assert (found.pending, found.unreadable) == ((), {})
    rest = Rest(sandbox)
    added = {"zones": [{"name": "zone-2"}]}
    assert rest.call("PATCH", "/api/vcenter/namespaces/instances/team-a", added).status == 204
    (item,) = plan(tmp_path / "site.yaml", sandbox).pending
    assert [(each.field, each.now, each.wanted) for each in item.changes] == [
        ("zones", ["zone-1", "zone-2"], ["zone-1"])
    ]
    assert made(apply(zoned(tmp_path, reserved={"best-effort-small": 6}), sandbox))
    assert plan(tmp_path / "site.yaml", sandbox).pending == ()
    zones = rest.get("/api/vcenter/namespaces/instances/v2/team-a")["zones"]
    assert [each["zone"] for each in zones] == ["zone-1"]


@sandbox_of(WORLD_9)
@of_several("supervisor_namespace.zones", "supervisor_namespace.reserved")
def test_each_zone_and_each_reservation_is_made(sandbox, tmp_path):
    path = zoned(tmp_path, zones=["zone-1", "zone-2"], vm_classes=[*RESERVED], reserved=RESERVED)
    assert made(apply(path, sandbox))
    found = Rest(sandbox).get("/api/vcenter/namespaces/instances/v2/team-a")
    assert sorted(each["zone"] for each in found["zones"]) == ["zone-1", "zone-2"]
    kept = json.dumps(sandbox.world(), sort_keys=True)  # vCenter never tells reservations
    for name, count in RESERVED.items():
        said = f'{{"count": {count}, "reserved_vm_class": "{name}"}}'
        assert kept.count(said) == 2, "in each zone"
    assert plan(path, sandbox).pending == ()


@sandbox_of(WORLD_9)
def test_a_zone_that_the_supervisor_has_not_is_refused(sandbox, tmp_path):
    found = plan(zoned(tmp_path, zones=["zone-3"]), sandbox)
    assert "has no zone zone-3" in str(found.problems[0].what)


def test_zones_are_refused_before_9_0(sandbox, tmp_path):
    found = plan(zoned(tmp_path), sandbox)
    assert "namespaces have no zones" in str(found.problems[0].what)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"zones": [], "reserved": {"best-effort-small": 4}}, "needs zones"),
        ({"reserved": {"gpu": 4}}, "not among its vm_classes"),
        ({"zones": ["zone-1", "zone-1"]}, "named twice"),
    ],
)
def test_reservations_that_make_no_sense_are_errors_in_the_file(fields, why):
    with pytest.raises(ValidationError, match=why):
        Spec.model_validate({**ZONED, **fields})


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    rest, path = Rest(sandbox), "/api/vcenter/namespaces/instances"
    cluster = rest.get("/api/vcenter/namespace-management/clusters")[0]["cluster"]
    assert (
        rest.call("POST", path, {"cluster": cluster, "namespace": name, "description": "theirs"}).status
        == 204
    )
    until(lambda: rest.get(f"{path}/{name}")["config_status"] == "RUNNING")
    return lambda: {field: value for field, value in rest.get(f"{path}/{name}").items() if field != "stats"}


UNMANAGED = Entry(
    at="team-a",
    plant=unmanaged,
    inside=(lambda sandbox: config_map(supervisor(sandbox), "team-a"), "ConfigMap team-a/theirs"),
)


CHANGED_FIELDS = [
    {"limits": {"cpu": "20GHz", "memory": "64GiB"}},
    {"limits": {"cpu": "16GHz", "memory": "96GiB"}},
    {"limits": {"storage": "1TiB"}},
    {"description": "words"},
    {"storage": {"gold": "1TiB"}},
    {"access": [{"group": "devs@small.test", "role": "edit"}]},
    {"vm_classes": ["guaranteed-small"]},
    {"content_libraries": ["tkr"]},
]
SLOW_TO_CHANGE = True

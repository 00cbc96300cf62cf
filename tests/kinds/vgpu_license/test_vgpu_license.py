"""Licensing of vGPU clients, decided without machines: gridd.conf is merged and given back, restarted only
where it changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, on_machine

from bfinfra.kinds.machine.vgpu_license import (
    Installed,
    Remove,
    SetUp,
    Spec,
    State,
    VgpuLicense,
    VgpuLicenseFacts,
    license_status,
    merged,
    read,
)
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.ssh import HostTrust, LinuxMachine
from bfinfra.sandbox import Running

MARK = Mark("site", "vgpu_license/workers")
MACHINES = {
    name: LinuxMachine(name, f"10.0.0.{number}", "root", HostTrust(sha256="SHA256:" + "A" * 43))
    for number, name in enumerate(("one", "two"), 1)
}
TEMPLATE = "# /etc/nvidia/gridd.conf.template\n#ServerAddress=\nEnableUI=TRUE\nFeatureType=0\n"


def spec(**how: Any) -> Spec:
    return Spec.model_validate({"hosts": ["one", "two"], "server": "10.1.1.1", **how})


def installed_as(given: Spec, **how: Any) -> Installed:
    found = {
        "mark": MARK.committed(given.applied()),
        "text": merged(TEMPLATE, given.values()),
        "before": {"ServerAddress": None, "ServerPort": None, "FeatureType": "0"},
        "service": "active",
        **how,
    }
    return Installed(**found)


def steps(given: Spec | None, **on: Installed) -> list[Any]:
    there = {host: each for host, each in on.items() if each.there}
    mark = next((each.mark for each in on.values() if each.mark), None)
    state = (
        State(mark=mark, hosts=tuple(there), on=there, machines={host: MACHINES[host] for host in there})
        if there
        else None
    )
    return list(
        VgpuLicense.steps("workers", given, state, PlanContext(MARK, facts=VgpuLicenseFacts(MACHINES, on)))
    )


def test_only_the_keys_named_change_and_comments_stay() -> None:
    text = merged(TEMPLATE, spec(backup="10.1.1.2", port=7071).values())
    assert text.splitlines() == [
        "# /etc/nvidia/gridd.conf.template",
        "#ServerAddress=",
        "EnableUI=TRUE",
        "FeatureType=4",
        "ServerAddress=10.1.1.1",
        "ServerPort=7071",
        "BackupServerAddress=10.1.1.2",
        "BackupServerPort=7070",
    ]
    assert (
        merged(
            text,
            {
                "ServerAddress": None,
                "ServerPort": None,
                "BackupServerAddress": None,
                "BackupServerPort": None,
                "FeatureType": "0",
            },
        )
        == TEMPLATE
    )
    assert merged("A=1\nA=2\n", {"A": "3"}) == "A=3\n"


@of_several("vgpu_license.hosts")
def test_a_fresh_machine_is_set_up_and_one_that_agrees_is_left() -> None:
    (step,) = steps(
        spec(), one=Installed(None, service="active"), two=Installed(None, text=TEMPLATE, service="active")
    )
    assert (type(step), step.names) == (SetUp, "one, two")
    assert read(step.texts["one"]) == {"ServerAddress": "10.1.1.1", "ServerPort": "7070", "FeatureType": "4"}
    assert "made=yes" in step.notes["one"] and "made=yes" not in step.notes["two"]
    assert steps(spec(), one=installed_as(spec()), two=installed_as(spec())) == []


def test_another_server_on_one_machine_and_a_service_that_stopped_are_what_the_plan_names() -> None:
    moved = installed_as(spec(), text=merged(TEMPLATE, spec(server="10.9.9.9").values()))
    (step,) = steps(spec(), one=moved, two=installed_as(spec(), service="inactive"))
    assert [(change.field, change.now, change.wanted) for change in step.changes] == [
        ("on.one.values.ServerAddress", "10.9.9.9", "10.1.1.1"),
        ("on.two.service", "inactive", "running"),
    ]
    assert step.texts["two"] == installed_as(spec()).text


def test_the_earlier_file_comes_back_with_what_others_wrote_since() -> None:
    made = installed_as(
        spec(), text=merged(None, spec().values()), before=dict.fromkeys(spec().values()), made=True
    )
    (step,) = steps(
        None, one=installed_as(spec(), text=merged(TEMPLATE, spec().values()) + "Theirs=1\n"), two=made
    )
    assert type(step) is Remove
    assert step.texts == {"one": TEMPLATE + "Theirs=1\n", "two": ""}


def test_a_backup_that_leaves_the_file_leaves_the_machine() -> None:
    both = spec(backup="10.1.1.2")
    now = installed_as(
        both,
        before={
            "BackupServerAddress": None,
            "BackupServerPort": None,
            "ServerAddress": None,
            "ServerPort": None,
            "FeatureType": "0",
        },
    )
    (step,) = steps(spec(), one=now, two=now)
    assert "Backup" not in step.texts["one"]


def test_machines_without_the_driver_and_those_of_others_are_refused() -> None:
    with pytest.raises(Refusal, match=r"no nvidia-gridd\.service on two"):
        steps(spec(), one=Installed(None, service="active"), two=Installed(None))
    with pytest.raises(Refusal, match="on two names a license server that does not belong to"):
        steps(spec(), one=installed_as(spec()), two=installed_as(spec(), mark=None))


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (
            "    License Status                    : Licensed (Expiry: 2026-1-1)\n",
            "Licensed (Expiry: 2026-1-1)",
        ),
        (
            "    License Status : Licensed\n    License Status : Unlicensed (Restricted)\n",
            "Unlicensed (Restricted)",
        ),
        ("command not found", ""),
    ],
)
def test_the_worst_of_several_gpus_counts(text: str, status: str) -> None:
    assert license_status(text) == status


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/etc/nvidia/{name}", "ServerAddress=10.9.9.9\n")


UNMANAGED = Entry(at="gridd.conf", plant=unmanaged, inside="a file holds lines only")


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_a_line_ends_where_the_driver_ends_it(end: str) -> None:
    text = f"# a comment{end}FeatureType=1\r\nEnableUI=TRUE\n"
    assert "FeatureType" not in read(text)
    assert merged(text, {"FeatureType": "4"}) == f"{text}FeatureType=4\n"
    assert merged(f"{text}FeatureType=4\n", {"FeatureType": None}) == text


def test_a_file_with_bytes_that_are_no_text_is_not_written_back() -> None:
    wanted = spec()
    with pytest.raises(Refusal, match=r"/etc/nvidia/gridd\.conf on two has bytes that are no UTF-8"):
        steps(wanted, one=installed_as(wanted), two=Installed(None, "# caf\ufffd\n", service="active"))
    with pytest.raises(Refusal, match="no UTF-8"):
        steps(None, one=installed_as(wanted, text="# caf\ufffd\nServerAddress=10.1.1.1\n"))

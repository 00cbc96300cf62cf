"""FlexDirect on machines, decided without any: what differs is set up, what restarts disrupts, what is not
ours is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, on_machine

from bfinfra.kinds.machine.flexdirect_host import decide
from bfinfra.kinds.machine.flexdirect_host.decide import Anew, Remove, Restart, SetUp, unit_text
from bfinfra.kinds.machine.flexdirect_host.spec import Scheduler, Spec
from bfinfra.kinds.machine.flexdirect_host.state import LOOK, FlexDirectHostFacts, Installed, State, read
from bfinfra.model.awaited import Absent, Awaited
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.ssh import HostTrust, LinuxMachine
from bfinfra.sandbox import Running

PACKAGE = "ab" * 32
MARK = Mark("site", "flexdirect_host/v100")
MACHINES = {
    name: LinuxMachine(name, f"10.0.0.{number}", "root", HostTrust(sha256="SHA256:" + "A" * 43))
    for number, name in enumerate(("one", "two"), 1)
}


def spec(**how) -> Spec:
    return Spec.model_validate(
        {
            "hosts": ["one", "two"],
            "package": "flexdirect.deb",
            "license": {"env": "LICENSE"},
            "scheduler": {"gpus": 2},
            **how,
        }
    )


def installed(wanted: Spec, **how) -> Installed:
    found = {
        "mark": MARK.committed(wanted.applied()),
        "package": PACKAGE,
        "program": True,
        "licensed": True,
        "file": "flexdirect.deb",
        "unit": unit_text(wanted.scheduler),
        "service": "running",
        **how,
    }
    return Installed(**found)


def state(**on: Installed) -> State:
    mark = next((each.mark for each in on.values() if each.mark), None)
    return State(mark=mark, hosts=tuple(on), on=on, machines={name: MACHINES[name] for name in on})


def steps(wanted: Spec | None, now: State | None, licensed=("one", "two"), package=PACKAGE):
    facts = FlexDirectHostFacts(MACHINES, packages={"v100": package}, licensed={"v100": frozenset(licensed)})
    return decide.steps(wanted, now, PlanContext(MARK, facts=facts))


@of_several("flexdirect_host.hosts")
def test_everything_is_set_up_in_one_play_where_nothing_exists():
    (step,) = steps(spec(), None, licensed=())
    assert type(step) is SetUp
    assert step.title() == "set FlexDirect up on one, two"
    assert step.todo == {name: {"install": True, "init": True, "unfinished": True} for name in ("one", "two")}


def test_without_the_package_machines_are_held_against_what_most_of_them_have():
    wanted, away = spec(), {"v100": ("package", Absent("flexdirect.deb is not there yet"))}
    on = dict.fromkeys(("one", "two"), installed(wanted))

    def decided(now):
        facts = FlexDirectHostFacts(
            MACHINES, packages={"v100": ""}, away=away, licensed={"v100": frozenset(("one", "two"))}
        )
        return decide.steps(wanted, now, PlanContext(MARK, facts=facts))

    assert decided(state(**on)) == ()
    with pytest.raises(Awaited) as awaited:
        decided(state(**{**on, "two": installed(wanted, service="stopped")}))
    assert [change.field for change in awaited.value.steps[0].changes] == ["on.two.service"]
    with pytest.raises(Awaited, match="is not there yet"):
        decided(None)


def test_what_agrees_is_left_and_what_differs_is_done_where_it_differs():
    wanted = spec()
    assert steps(wanted, state(one=installed(wanted), two=installed(wanted))) == ()
    (step,) = steps(wanted, state(one=installed(wanted), two=installed(wanted, service="stopped")))
    assert (type(step), step.names) == (SetUp, "two")
    assert [(change.field, change.now, change.wanted) for change in step.changes] == [
        ("on.two.service", "stopped", "running")
    ]


@of_several("flexdirect_host.scheduler.gpus")
def test_other_gpus_restart_the_scheduler_and_that_disrupts():
    before, wanted = spec(), spec(scheduler={"devices": ["0", "2"], "port": 56002, "address": "10.0.0.1"})
    (step,) = steps(wanted, state(one=installed(before), two=installed(before)))
    assert type(step) is Restart
    assert "ExecStart=/usr/bin/flexdirect resource_scheduler -d 0,2 -l 10.0.0.1 -s 56002\n" in step.unit


def test_another_license_is_given_again_and_another_package_installed():
    wanted = spec()
    (step,) = steps(wanted, state(one=installed(wanted), two=installed(wanted)), licensed=("one",))
    assert step.todo == {"two": {"install": False, "init": True, "unfinished": True}}
    (step,) = steps(wanted, state(one=installed(wanted), two=installed(wanted)), package="cd" * 32)
    assert {host: todo["install"] for host, todo in step.todo.items()} == {"one": True, "two": True}


def test_a_machine_that_leaves_the_file_is_cleared_and_a_destroy_clears_all():
    both, one = spec(), spec(hosts=["one"])
    *_, step = steps(one, state(one=installed(one), two=installed(both)))
    assert (type(step), step.names, step.packages) == (Remove, "two", {"two": "flexdirect.deb"})
    (step,) = steps(None, state(one=installed(both), two=installed(both)))
    assert step.names == "one, two"


UNDO = ("/opt/bitfusionio/uninstall", "--yes")


def test_what_an_installer_put_there_is_undone_by_its_command_or_the_plan_says_that_it_stays():
    undone, stays = (
        installed(spec(package="install.sh"), file="install.sh", uninstall=command) for command in (UNDO, ())
    )
    (step,) = steps(None, state(one=undone, two=stays))
    assert step.uninstall == {"one": UNDO, "two": ()}
    assert step.title() == (
        "take FlexDirect off one, two; the program itself stays on two: an installer installed it, and "
        "no uninstall was given"
    )
    (step,) = steps(None, state(one=installed(spec())))
    assert step.title() == "take FlexDirect off one"


def test_a_package_in_another_form_goes_before_the_new_one_comes_where_that_can_be_done():
    wanted = spec()
    script = spec(package="install.sh", uninstall=list(UNDO))
    found = steps(
        wanted, state(one=installed(script, file="install.sh", uninstall=UNDO), two=installed(wanted))
    )
    assert [(type(each), each.names) for each in found] == [(Anew, "one"), (SetUp, "one")]
    off, _ = steps(
        script,
        state(
            one=installed(wanted, service="stopped"), two=installed(script, file="install.sh", uninstall=UNDO)
        ),
    )
    assert (type(off), off.names, off.packages) == (Remove, "one", {"one": "flexdirect.deb"})
    (over,) = steps(
        wanted,
        state(one=installed(spec(package="install.sh"), file="install.sh"), two=installed(wanted)),
        package="cd" * 32,
    )
    assert type(over) is Restart
    assert over.title().endswith("; over what an installer put on one, as no uninstall was given for that")


def test_the_command_is_kept_on_the_machine_and_read_back():
    record = SimpleNamespace(
        ok=True, text=f"{MARK.encode()}\npackage=install.sh\nuninstall={json.dumps(UNDO)}\n"
    )
    nothing = SimpleNamespace(ok=False, text="")
    assert read({**dict.fromkeys(LOOK, nothing), "record": record}).uninstall == UNDO
    assert (
        read(
            {**dict.fromkeys(LOOK, nothing), "record": SimpleNamespace(ok=True, text="uninstall={")}
        ).uninstall
        == ()
    )


def test_a_package_has_no_uninstall_of_its_own():
    with pytest.raises(ValueError, match="it is for installers"):
        spec(uninstall=["rm"])


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (state(one=installed(spec()), two=Installed(None, program=True)), "FlexDirect is on two already"),
        (
            state(one=installed(spec()), two=installed(spec(), mark=Mark("other", "flexdirect_host/x"))),
            "two belongs to flexdirect_host/x of the site other",
        ),
    ],
)
def test_what_is_not_ours_on_one_machine_stops_all(now, why):
    with pytest.raises(Refusal, match=why):
        steps(spec(), now)


def test_no_step_contains_a_secret():
    (step,) = steps(spec(), None, licensed=())
    assert "{env: LICENSE}" in f"{step.license}"


def test_scheduler_gives_out_a_number_or_devices():
    with pytest.raises(ValueError, match="not both"):
        Scheduler(gpus=1, devices=("0",))


@pytest.mark.parametrize(
    ("os", "fits"), [("ubuntu 20.04", True), ("ubuntu", True), ("ubuntu 20", False), ("centos 7", False)]
)
def test_host_and_container_have_the_same_operating_system(os, fits):
    facts = FlexDirectHostFacts(
        MACHINES, packages={"v100": PACKAGE}, licensed={"v100": frozenset()}, os={"one": "ubuntu 20.04"}
    )
    if fits:
        assert decide.steps(spec(os=os), None, PlanContext(MARK, facts=facts))
    else:
        with pytest.raises(Refusal, match=r"one runs ubuntu 20\.04, and the containers are"):
            decide.steps(spec(os=os), None, PlanContext(MARK, facts=facts))


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/usr/bin/{name}", "theirs\n")


UNMANAGED = Entry(at="flexdirect", plant=unmanaged, inside="what else is on a machine is no part of it")

"""The Bitfusion client on machines, decided without any: what differs is set up, what is not ours is left,
what was put there goes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, on_machine
from pydantic import ValidationError

from bfinfra.backends.ansible.play import Played
from bfinfra.backends.ansible.reading import Answer
from bfinfra.backends.bitfusion import read_token
from bfinfra.kinds.machine.bitfusion_client.decide import Remove, SetUp
from bfinfra.kinds.machine.bitfusion_client.kind import BitfusionClient, _files_of
from bfinfra.kinds.machine.bitfusion_client.spec import Spec
from bfinfra.kinds.machine.bitfusion_client.state import BitfusionClientFacts, Installed, State
from bfinfra.model.awaited import Absent, Awaited
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.errors import Refusal, Rejected
from bfinfra.model.mark import Mark
from bfinfra.model.plan import step_data
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.ssh import HostTrust, LinuxMachine
from bfinfra.sandbox import Running
from bfinfra.sandbox.factories.token import make_token

PACKAGE, TOKEN = "ab" * 32, {"ca.crt": "11" * 32, "client.yaml": "22" * 32, "servers.conf": "33" * 32}
MARK = Mark("site", "bitfusion_client/desk")
MACHINES = {
    name: LinuxMachine(name, f"10.0.0.{number}", "root", HostTrust(sha256="SHA256:" + "A" * 43))
    for number, name in enumerate(("one", "two"), 1)
}


def spec(**how) -> Spec:
    return Spec.model_validate(
        {
            "hosts": ["one", "two"],
            "package": "client.deb",
            "token": "team",
            "users": [{"name": "root"}, {"name": "ann", "home": "/data/ann"}],
            **how,
        }
    )


def installed(wanted: Spec, **how) -> Installed:
    files = {
        "/etc/bitfusion/tls/ca.crt": TOKEN["ca.crt"],
        "/etc/bitfusion/servers.conf": TOKEN["servers.conf"],
        **{f"{user.folder}/client.yaml": TOKEN["client.yaml"] for user in wanted.users},
    }
    found = {
        "mark": MARK.committed(wanted.applied()),
        "package": PACKAGE,
        "program": True,
        "files": files,
        "members": frozenset({"ann bitfusion", "ann ann"}),
        "noted": {"package": "client.deb", "folders": "/root/.bitfusion,/data/ann/.bitfusion"},
        **how,
    }
    return Installed(**found)


AWAY = ("package", Absent("client.deb is not there yet"))


def steps(wanted: Spec | None, token=TOKEN, package=PACKAGE, **on: Installed):
    mark = next((each.mark for each in on.values() if each.mark), None)
    state = (
        State(mark=mark, hosts=tuple(on), on=on, machines={name: MACHINES[name] for name in on})
        if on
        else None
    )
    needs = {"token": ResolvedRef(Key("bitfusion_token", "team"), None, None)}
    return BitfusionClient.steps(
        "desk",
        wanted,
        state,
        PlanContext(
            MARK,
            needs,
            facts=BitfusionClientFacts(
                MACHINES,
                packages={"desk": package},
                away={} if package else {"desk": AWAY},
                tokens={"desk": token},
            ),
        ),
    )


@of_several("bitfusion_client.hosts")
def test_everything_is_set_up_in_one_play_where_nothing_exists():
    (step,) = steps(spec())
    assert (type(step), step.title()) == (SetUp, "set the Bitfusion client up on one, two")
    assert step.users == [("root", "/root/.bitfusion"), ("ann", "/data/ann/.bitfusion")]
    assert step.install == {"one": True, "two": True}


def test_without_package_and_token_existing_files_are_compared_with_those_that_were_installed():
    wanted, noted = spec(), ",".join(f"{name}:{value}" for name, value in TOKEN.items())
    there = installed(wanted, noted={"token": noted})
    assert steps(wanted, token={}, package="", one=there, two=there) == ()
    moved = installed(
        wanted, noted={"token": noted}, files={**there.files, "/etc/bitfusion/servers.conf": "99" * 32}
    )
    with pytest.raises(Awaited, match="not there yet") as awaited:
        steps(wanted, token={}, package="", one=there, two=moved)
    assert [change.field for change in awaited.value.steps[0].changes] == [
        "on.two.files./etc/bitfusion/servers.conf"
    ]
    with pytest.raises(Awaited) as awaited:
        steps(wanted, token={}, package="")
    assert (awaited.value.field, awaited.value.steps) == ("package", ())
    old = installed(wanted)
    assert (
        steps(wanted, token={}, package="", one=old, two=old) == ()
    )  # an earlier release noted nothing of the token


def test_what_agrees_is_left_and_a_changed_token_is_put_where_it_differs():
    wanted = spec()
    assert steps(wanted, one=installed(wanted), two=installed(wanted)) == ()
    old = {**installed(wanted).files, "/data/ann/.bitfusion/client.yaml": "99" * 32}
    (step,) = steps(wanted, one=installed(wanted), two=installed(wanted, files=old))
    assert (step.names, step.install) == ("two", {"two": False})
    assert [(change.field, change.now, change.wanted) for change in step.changes] == [
        ("on.two.files./data/ann/.bitfusion/client.yaml", "9" * 12, "2" * 12)
    ]


def test_a_user_outside_the_group_is_put_in():
    wanted = spec()
    (step,) = steps(wanted, one=installed(wanted), two=installed(wanted, members=frozenset({"ann ann"})))
    assert [(change.field, change.wanted) for change in step.changes] == [("on.two.users.ann", "a member")]


def test_what_goes_is_what_was_put_there():
    wanted = spec(hosts=["one"])
    *_, step = steps(wanted, one=installed(wanted), two=installed(spec()))
    assert (type(step), step.names) == (Remove, "two")
    assert _files_of(step.noted["two"])[2:] == [
        "/root/.bitfusion/client.yaml",
        "/root/.bitfusion/client.yaml.new",
        "/data/ann/.bitfusion/client.yaml",
        "/data/ann/.bitfusion/client.yaml.new",
        "/var/cache/bfinfra/client.deb",
    ]
    assert _files_of({"package": "client.deb", "folders": ""}) == ["/var/cache/bfinfra/client.deb"], (
        "an enabled VM keeps the plug-in's files"
    )


GIVEN = {
    "token": None,
    "hosts": ["one"],
    "client_files": {"host": "two", "client": "/home/gpu/.bitfusion/client.yaml"},
}


def test_files_of_an_enabled_machine_take_the_place_of_a_token():
    (step,) = steps(spec(**GIVEN))
    assert (step.token, step.giver, step.given["client.yaml"]) == (
        "",
        MACHINES["two"],
        "/home/gpu/.bitfusion/client.yaml",
    )
    assert steps(spec(**GIVEN), one=installed(spec(**GIVEN))) == ()
    (step,) = steps(spec(**GIVEN), one=installed(spec(**GIVEN)), token={**TOKEN, "client.yaml": "44" * 32})
    assert {change.field for change in step.changes} == {
        "on.one.files./root/.bitfusion/client.yaml",
        "on.one.files./data/ann/.bitfusion/client.yaml",
    }


def test_a_machine_without_the_files_gives_none():
    with pytest.raises(Refusal, match=r"two has no /home/gpu/\.bitfusion/client\.yaml"):
        steps(spec(**GIVEN), token={name: value for name, value in TOKEN.items() if name != "client.yaml"})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({**GIVEN, "token": "team"}, "give token or client_files"),
        ({**GIVEN, "hosts": ["one", "two"]}, "two is one of hosts"),
    ],
)
def test_files_come_from_one_place(changes, why):
    with pytest.raises(ValidationError, match=why):
        spec(**changes)


class Giver:
    """A machine that is asked once."""

    def __init__(self, **files: Answer) -> None:
        self.files, self.played = files, []

    def read(self, wanted, timeout=60):
        return {
            machine: {name: self.files[path.rpartition("/")[2]] for name, (*_, path) in commands.items()}
            for machine, commands in wanted.items()
        }

    def play(self, play):
        self.played.append(play)
        return Played(play.role, {})


def test_files_are_read_when_they_are_copied_and_are_nowhere_else(tmp_path):
    make_token(tmp_path / "token.tar", name="one", servers=["10.0.0.9:56001"])
    token = read_token(tmp_path / "token.tar")
    hosts = Giver(**{name: Answer(text, 0) for name, text in token.files.items()})
    (step,) = steps(spec(**GIVEN))
    BitfusionClient(hosts, Site("site", None, {})).run(step, lambda _: None)
    (play,) = hosts.played
    assert play.texts == token.files
    assert token.client_yaml not in repr(step) + json.dumps(step_data(step)) + repr(play)
    hosts.files["client.yaml"] = Answer("No such file", 1)
    with pytest.raises(Rejected, match=r"there is no client\.yaml"):
        BitfusionClient(hosts, Site("site", None, {})).run(step, lambda _: None)


def test_what_is_not_ours_stops_all():
    with pytest.raises(Refusal, match="the client on two does not belong to bitfusion_client/desk"):
        steps(spec(), one=installed(spec()), two=installed(spec(), mark=None))


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "cpu-01", f"/usr/bin/{name}", "theirs\n")


UNMANAGED = Entry(at="bitfusion", plant=unmanaged, inside="what else is on a machine is no part of it")

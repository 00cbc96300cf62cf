"""The Bitfusion client on machines, decided without any: what differs is set up, what is not ours is left, what was put there goes."""

from __future__ import annotations

import pytest

from bfinfra.kinds.bitfusion_client import BitfusionClient, Facts, Installed, Remove, SetUp, Spec, State, _files_of
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Need
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.model.ssh import HostTrust, Machine

PACKAGE, TOKEN = "ab" * 32, {"ca.crt": "11" * 32, "client.yaml": "22" * 32, "servers.conf": "33" * 32}
MARK = Mark("site", "bitfusion_client/desk")
MACHINES = {name: Machine(name, f"10.0.0.{number}", "root", HostTrust(sha256="SHA256:" + "A" * 43)) for number, name in enumerate(("one", "two"), 1)}


def spec(**how) -> Spec:
    return Spec.model_validate({"hosts": ["one", "two"], "package": "client.deb", "token": "team", "users": [{"name": "root"}, {"name": "ann", "home": "/data/ann"}], **how})


def installed(wanted: Spec, **how) -> Installed:
    files = {"/etc/bitfusion/tls/ca.crt": TOKEN["ca.crt"], "/etc/bitfusion/servers.conf": TOKEN["servers.conf"],
             **{f"{user.folder}/client.yaml": TOKEN["client.yaml"] for user in wanted.users}}
    found = {"mark": MARK.seal(wanted.applied()), "package": PACKAGE, "program": True, "files": files, "members": frozenset({"ann bitfusion", "ann ann"}),
             "noted": {"package": "client.deb", "folders": "/root/.bitfusion,/data/ann/.bitfusion"}, **how}
    return Installed(**found)


def steps(wanted: Spec | None, token=TOKEN, **on: Installed):
    mark = next((each.mark for each in on.values() if each.mark), None)
    state = State(mark=mark, hosts=tuple(on), on=on, machines={name: MACHINES[name] for name in on}) if on else None
    needs = {"token": Need(Key("bitfusion_token", "team"), None, None)}
    return BitfusionClient.steps("desk", wanted, state, Around(MARK, needs, facts=Facts(MACHINES, {"desk": PACKAGE}, {"desk": token})))


def test_nothing_stands_everything_is_set_up_in_one_play():
    (step,) = steps(spec())
    assert (type(step), step.title()) == (SetUp, "set the Bitfusion client up on one, two")
    assert step.users == [("root", "/root/.bitfusion"), ("ann", "/data/ann/.bitfusion")]
    assert step.install == {"one": True, "two": True}


def test_what_agrees_is_left_and_a_changed_token_is_put_where_it_differs():
    wanted = spec()
    assert steps(wanted, one=installed(wanted), two=installed(wanted)) == ()
    old = {**installed(wanted).files, "/data/ann/.bitfusion/client.yaml": "99" * 32}
    (step,) = steps(wanted, one=installed(wanted), two=installed(wanted, files=old))
    assert (step.names, step.install) == ("two", {"two": False})
    assert [(change.field, change.now, change.wanted) for change in step.changes] == [("on.two.files./data/ann/.bitfusion/client.yaml", "9" * 12, "2" * 12)]


def test_a_user_outside_the_group_is_put_in():
    wanted = spec()
    (step,) = steps(wanted, one=installed(wanted), two=installed(wanted, members=frozenset({"ann ann"})))
    assert [(change.field, change.wanted) for change in step.changes] == [("on.two.users.ann", "a member")]


def test_what_goes_is_what_was_put_there():
    wanted = spec(hosts=["one"])
    *_, step = steps(wanted, one=installed(wanted), two=installed(spec()))
    assert (type(step), step.names) == (Remove, "two")
    assert _files_of(step.noted["two"])[2:] == ["/root/.bitfusion/client.yaml", "/data/ann/.bitfusion/client.yaml"]
    assert _files_of({"package": "client.deb", "folders": ""}) == [], "an enabled VM keeps the plug-in's files"


def test_what_is_not_ours_stops_all():
    with pytest.raises(Refusal, match="the client on two is not of bitfusion_client/desk"):
        steps(spec(), one=installed(spec()), two=installed(spec(), mark=None))

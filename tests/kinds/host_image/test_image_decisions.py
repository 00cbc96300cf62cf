"""What is decided for the image of a cluster: its components, its hosts and its notes, word for word."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bfinfra.backends.vcenter.esxi import Lease
from bfinfra.backends.vcenter.host_images import Depot
from bfinfra.kinds.vcenter.base.begun import Begun, Wait
from bfinfra.kinds.vcenter.base.host_note import HostNote
from bfinfra.kinds.vcenter.base.host_setting import HostValue
from bfinfra.kinds.vcenter.host_image.branches import newer_guests
from bfinfra.kinds.vcenter.host_image.decide import decide, owed
from bfinfra.kinds.vcenter.host_image.spec import Spec
from bfinfra.kinds.vcenter.host_image.steps import (
    Commit,
    Drop,
    Forget,
    Import,
    Leave,
    OnHost,
    PutBack,
    Remediate,
    SetImage,
    State,
)
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

MARK = Mark("s", "host_image/gpu")
AROUND = PlanContext(MARK, facts=("barn", "farm"))
FARM: dict[str, str] = {"cluster": "farm", "moid": "c1"}
DRIVER, TOOL = "NVIDIA-vGPU", "gpu-tool"
URL = "https://repo.example/gpu.zip"
LEASE = Lease(101, "far/1a2b/4711", "2026-01-01T00:00:00Z")


def spec(**fields: Any) -> Spec:
    return Spec.model_validate({"cluster": "farm", "components": {DRIVER: "2.0"}, **fields})


REMEDIATED = spec(remediate="if_needed", accept_eula=True)
NEVER = spec()


def setting(
    now: str | None, key: str = DRIVER, note: HostNote | None = None, cluster: str = "farm", moid: str = "c1"
) -> HostValue:
    return HostValue(cluster, moid, key, now, note)


def noted(applied: Spec | None = NEVER, before: str | None = "", mark: Mark = MARK) -> HostNote:
    return HostNote(mark.committed(applied.applied()) if applied else mark, before)


def host(name: str, version: str = "2.0", cluster: str = "c1", **more: Any) -> OnHost:
    return OnHost(name, f"id-{name}", cluster, {DRIVER: version} if version else {}, **more)


def state(*settings: HostValue, hosts: tuple[OnHost, ...] = (), **more: Any) -> State:
    marks = [each.note.mark for each in settings if each.note]
    return State(mark=marks[0] if marks else None, settings=settings, hosts=hosts, **more)


def decided(wanted: Spec | None, there: State | None) -> list[Any]:
    return [*decide(wanted, there, AROUND)]


def sorts(wanted: Spec | None, there: State | None) -> list[type]:
    return [type(each) for each in decided(wanted, there)]


def refused(wanted: Spec, there: State | None) -> tuple[str, str, str, str]:
    with pytest.raises(Refusal) as raised:
        decided(wanted, there)
    (problem,) = raised.value.problems
    return raised.value.field, problem.what, problem.why, problem.next


def text(applied: Spec, before: str) -> str:
    return HostNote(MARK.committed(applied.applied()), before).encode()


MOVED = state(setting("2.0", note=noted(), cluster="old", moid="c0"))


@pytest.mark.parametrize("there", [None, State(), MOVED], ids=["unknown", "empty", "it was in another"])
def test_a_cluster_that_is_not_there_is_refused_before_anything_is_touched(there):
    field, what, _, then = refused(spec(cluster="fram"), there)
    assert (field, what, then) == ("cluster", "there is no cluster fram", "did you mean farm?")
    with pytest.raises(Refusal) as raised:
        decide(NEVER, there, replace(AROUND, facts=None))
    assert raised.value.problems[0].next == "make it first"


def test_what_is_not_there_needs_nothing_to_go():
    assert decided(None, None) == decided(None, State()) == []
    theirs = noted(mark=Mark("s", "host_image/other"))
    assert decided(None, state(setting("2.0", note=theirs), setting("1.0", TOOL))) == []


def test_a_cluster_without_an_image_is_refused_with_where_to_give_it_one():
    assert refused(NEVER, state(setting(None), imaged=False)) == (
        "cluster",
        "the cluster farm has no image",
        "its hosts are updated by baselines, or by nothing",
        "give it an image in vCenter first (Updates, Image)",
    )


def test_a_component_that_another_resource_set_is_refused_and_no_other_one():
    theirs = noted(mark=Mark("s", "host_image/other"))
    assert refused(NEVER, state(setting("2.0", note=theirs))) == (
        "components",
        f"{DRIVER} of farm is set by another",
        "it belongs to host_image/other of s",
        "remove it from one of the two",
    )
    assert sorts(NEVER, state(setting("2.0"), setting("1.0", TOOL, theirs))) == [Commit]


def test_a_depot_comes_first_then_all_components_that_differ_are_set_at_once():
    wanted = spec(components={DRIVER: "2.0", TOOL: "1.1", "same": "3"}, depot={"url": URL})
    there = state(setting(""), setting("1.0", TOOL), setting("3", "same"))
    notes = {DRIVER: text(wanted, ""), TOOL: text(wanted, "1.0"), "same": text(wanted, "3")}
    imported, image = decided(wanted, there)
    assert imported == Import(**FARM, url=URL, description=f"by bfinfra\n{MARK.encode()}", notes=notes)
    assert replace(image, changes=()) == SetImage(
        **FARM, what=f"{DRIVER} 2.0, {TOOL} 1.1", components={DRIVER: "2.0", TOOL: "1.1"}, notes=notes
    )
    found = {each.field: (each.now, each.wanted) for each in image.changes}
    assert len(found) == len(image.changes)
    assert found[f"components.{DRIVER}"] == (None, "2.0")
    assert found[f"components.{TOOL}"] == ("1.0", "1.1")
    assert (found["components.same"], found["cluster"]) == ((None, "3"), (None, "farm"))
    held = replace(there, depots=(Depot("d", URL, ""),))
    assert sorts(wanted, held) == [SetImage]
    assert sorts(spec(depot={"url": URL}), state(setting("1.0"))) == [Import, SetImage]


def test_what_was_there_before_the_first_apply_stays_noted():
    newer = spec(components={DRIVER: "3.0"})
    (image,) = decided(newer, state(setting("2.0", note=noted(before="1.0"))))
    assert image.notes == {DRIVER: text(newer, "1.0")}
    assert image.changes == (Change(f"components.{DRIVER}", "2.0", "3.0"),)


def test_where_all_is_as_wanted_only_what_the_file_changed_is_noted():
    assert decided(NEVER, state(setting("2.0", note=noted()))) == []
    there = state(setting("2.0", note=noted(before="1.0")), hosts=(host("a"),))
    (commit,) = decided(REMEDIATED, there)
    assert replace(commit, changes=()) == Commit(**FARM, notes={DRIVER: text(REMEDIATED, "1.0")})
    assert {(each.field, each.now, each.wanted) for each in commit.changes} == {
        ("remediate", "never", "if_needed"),
        ("accept_eula", False, True),
    }
    two = spec(components={DRIVER: "2.0", TOOL: "1.0"})
    (commit,) = decided(two, state(setting("2.0", note=noted(two)), setting("1.0", TOOL)))
    assert commit.notes == {TOOL: text(two, "1.0")}


def test_hosts_that_differ_are_remediated_in_batches_and_each_is_told():
    wanted = spec(remediate="if_needed", accept_eula=True, at_once=2)
    hosts = (
        host("a", "1.0"),
        host("b", ""),
        host("c"),
        host("d", "1.0", maintenance=True),
        host("e", "1.0", cluster="c9"),
    )
    first, last = decided(wanted, state(setting("2.0", note=noted(wanted)), hosts=hosts))
    goes, stays = Begun(MARK, "").encode(), Begun(MARK, "", stay=True).encode()
    assert first == Remediate(
        **FARM,
        hosts="a, b",
        moids=("id-a", "id-b"),
        begun=(goes, goes),
        changes=(Change(f"hosts.a.{DRIVER}", "1.0", "2.0"), Change(f"hosts.b.{DRIVER}", None, "2.0")),
    )
    assert (last.hosts, last.begun) == ("d", (stays,))


def test_what_goes_is_put_back_first_in_the_image_then_on_hosts_and_then_forgotten():
    one = noted(REMEDIATED, "1.0")
    there = state(
        setting("2.0", note=one),
        setting("5", TOOL, noted(REMEDIATED, "")),
        setting("7", "kept", noted(REMEDIATED, "7")),
        setting("9", "theirs", noted(mark=Mark("s", "host_image/other"))),
        hosts=(host("a"), host("b", "1.0"), replace(host("c", "1.0"), components={DRIVER: "1.0", TOOL: "5"})),
        depots=(
            Depot("d1", URL, f"by bfinfra\n{MARK.encode()}"),
            Depot("d2", "https://x", "theirs"),
            Depot("d3", "https://y", Mark("s", "host_image/other").encode()),
        ),
    )
    seven = tuple(replace(each, components={**each.components, "kept": "7"}) for each in there.hosts)
    there = replace(there, hosts=seven)
    put, a, c, drop, forget = decided(None, there)
    assert put == PutBack(
        **FARM,
        what=f"{DRIVER} 2.0, {TOOL} 5",
        components={DRIVER: "1.0", TOOL: ""},
        changes=(Change(f"components.{DRIVER}", "2.0", "1.0"), Change(f"components.{TOOL}", "5", None)),
    )
    assert a.changes == (Change(f"hosts.a.{DRIVER}", "2.0", "1.0"),)
    assert c.changes == (Change(f"hosts.c.{TOOL}", "5", None),)
    assert drop == Drop(url=URL, identity="d1")
    assert forget == Forget(**FARM, components=(DRIVER, TOOL, "kept"))


def test_what_somebody_took_out_already_is_put_back_as_well():
    (put, forget) = decided(None, state(setting("", note=noted(before="1.0"))))
    assert put.changes == (Change(f"components.{DRIVER}", None, "1.0"),)
    assert (type(forget), put.components) == (Forget, {DRIVER: "1.0"})
    assert sorts(None, state(setting("", note=noted(before=None)))) == [Forget]


def test_hosts_are_not_remediated_to_go_where_nothing_says_that_the_site_allowed_it():
    hosts = (host("a"),)
    for note, found in (
        (noted(REMEDIATED), [PutBack, Remediate, Forget]),
        (noted(NEVER), [PutBack, Forget]),
        (noted(None), [PutBack, Forget]),
    ):
        assert sorts(None, state(setting("2.0", note=note), hosts=hosts)) == found


def test_a_component_that_moves_to_another_cluster_leaves_the_hosts_of_the_old_one():
    old = setting("2.0", note=noted(REMEDIATED), cluster="old", moid="c0")
    hosts = (host("a", "1.0"), host("o", cluster="c0"))
    there = state(old, setting("1.0"), hosts=hosts, depots=(Depot("d", URL, MARK.encode()),))
    steps = decided(REMEDIATED, there)
    assert [(type(each), each.cluster) for each in steps] == [
        (SetImage, "farm"),
        (PutBack, "old"),
        (Remediate, "farm"),
        (Forget, "old"),
    ]
    assert steps[2].hosts == "a"


@pytest.mark.parametrize(
    ("maintenance", "stay", "stays"),
    [(True, False, False), (True, True, True), (False, False, True), (False, True, True)],
)
def test_maintenance_mode_that_a_remediation_left_is_ended_first_unless_it_was_there_before(
    maintenance, stay, stays
):
    others = Begun(Mark("s", "gpu_host/a"), "")
    begun = Begun(MARK, "", stay)
    hosts = (
        host("a", cluster="c0", begun=begun, maintenance=maintenance),
        host("b", begun=others, maintenance=True),
        host("c", "1.0", maintenance=True),
    )
    old = setting("", note=noted(REMEDIATED), cluster="old", moid="c0")
    there = state(setting("2.0", note=noted(REMEDIATED)), old, hosts=hosts)
    leave, remediate, _ = decided(REMEDIATED, there)
    assert leave == Leave(cluster="old", moid="c0", host="a", host_moid="id-a", stay=stays)
    assert remediate.hosts == "c"


def test_another_run_that_restarts_hosts_is_waited_for_once_and_only_where_hosts_have_to_go_through_it():
    wait = Wait(cluster="farm", holder=str(LEASE), key=101)
    due, ours = host("a", "1.0"), host("b", begun=Begun(MARK, ""), maintenance=True)
    image, good = setting("1.0", note=noted(REMEDIATED)), setting("2.0", note=noted(REMEDIATED))

    def steps(*hosts: OnHost, of: HostValue = image) -> list[Any]:
        return decided(REMEDIATED, state(of, hosts=hosts, lease=LEASE))

    assert [type(each) for each in steps(due)] == [SetImage, Wait, Remediate]
    assert steps(due)[1] == wait
    assert [type(each) for each in steps(ours)] == [Wait, Leave, SetImage]
    assert [type(each) for each in steps(ours, due)] == [Wait, Leave, SetImage, Remediate]
    assert [type(each) for each in steps(host("a"))] == [SetImage]
    assert steps(host("a"), of=good) == []


@pytest.mark.parametrize(
    ("wanted", "hosts", "is_owed"),
    [
        (None, (), True),
        (NEVER, (host("a", "1.0"),), False),
        (NEVER, (host("a", begun=Begun(MARK, "")),), True),
        (REMEDIATED, (host("b"), host("a", "1.0")), True),
        (REMEDIATED, (host("a", ""),), True),
        (REMEDIATED, (host("a"),), False),
        (REMEDIATED, (host("a", "1.0", cluster="c9"),), False),
    ],
)
def test_whether_hosts_have_still_to_go_through_maintenance_mode(wanted, hosts, is_owed):
    assert owed(wanted, state(setting("2.0"), hosts=hosts)) is is_owed


def guests(
    version: str | None, hosts: dict[str, str], *, where: str = "farm", kind: str = "vks_cluster"
) -> Any:
    """The conflicts of a GPU operator with this driver in a cluster on hosts with these components."""
    operator = Key("gpu_operator", "op")
    image = Key("host_image", "gpu")
    driver = SimpleNamespace(version=version)
    return [
        *newer_guests(
            {
                Key("gpu_operator", "plain"): SimpleNamespace(driver=None, cluster="c1"),
                Key("dlvm", "vm"): SimpleNamespace(driver=SimpleNamespace(version="999.1"), cluster="c1"),
                Key("host_image", "yard"): SimpleNamespace(cluster="yard", components={DRIVER: "1.0"}),
                operator: SimpleNamespace(driver=driver, cluster="c1"),
                image: SimpleNamespace(cluster=where, components=hosts),
                Key(kind, "c1"): SimpleNamespace(namespace="ns"),
                Key("supervisor_namespace", "ns"): SimpleNamespace(cluster="farm"),
                Key("cluster_option", "o"): SimpleNamespace(cluster="farm", components={DRIVER: "100.1"}),
            }
        )
    ]


def test_a_guest_driver_of_a_newer_branch_than_its_hosts_is_a_conflict_of_both():
    found = guests("580.95.05", {"tool": "100.1", DRIVER: "570.10-1OEM", "nvd-gpu": "580.1", "NVD": "535.2"})
    assert found == [
        Conflict(
            Spot(Key("gpu_operator", "op"), "driver.version"),
            f"its driver is of branch 580, newer than the hosts' {branch}",
            (Spot(Key("host_image", "gpu"), f"components.{name}"),),
            why="a vGPU does not start with a guest driver that is newer than the host's",
            next=f"write a driver of branch {branch}, or update the hosts first",
        )
        for name, branch in ((DRIVER, 570), ("NVD", 535))
    ]
    assert len(guests("580.95.05", {DRIVER: "570.10"}, kind="tanzu_cluster")) == 1


@pytest.mark.parametrize(
    ("version", "hosts", "more"),
    [
        ("570.99", {DRIVER: "570.10"}, {}),
        ("535.1", {DRIVER: "570.10"}, {}),
        ("580.1", {DRIVER: "2.0"}, {}),
        (None, {DRIVER: "570.10"}, {}),
        ("latest", {DRIVER: "570.10"}, {}),
        ("580.1", {DRIVER: "570.10"}, {"where": "barn"}),
        ("580.1", {DRIVER: "570.10"}, {"kind": "kubernetes_cluster"}),
    ],
    ids=["same", "older", "no branch", "none", "a tag", "other hosts", "a cluster of others"],
)
def test_a_guest_driver_that_is_not_newer_or_runs_elsewhere_is_none(version, hosts, more):
    assert guests(version, hosts, **more) == []


def test_a_cluster_whose_namespace_the_site_does_not_make_has_no_known_hosts():
    wanted = {
        Key("gpu_operator", "op"): SimpleNamespace(driver=SimpleNamespace(version="580.1"), cluster="c1"),
        Key("host_image", "gpu"): SimpleNamespace(cluster="farm", components={DRIVER: "570.10"}),
        Key("vks_cluster", "c1"): SimpleNamespace(namespace="ns"),
    }
    assert [*newer_guests(wanted)] == []

"""A vCenter with other people's objects of the same names: another folder, another datacenter, another cluster.
What a site means is found, and everything else is as before, compared whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from forgotten import forget
from kinds import by_hand, untidy
from kinds.by_hand import of_kind
from kinds.lifecycle import EXAMPLES, SPECS, apply, difference, drift, endings, made, plan, run_context, world
from kinds.whole_life import survives
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator

import bfinfra
import bfinfra.kinds as registry
from bfinfra.app import init
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running, start, stop

OF_GROUPS = ("supervisor_namespace", "bitfusion_token", "namespace", "linux_host", "container_image")
LIVING = (*registry.names("vcenter"), *OF_GROUPS)
UNADOPTED = {"vmkernel_adapter": "an address that others gave a host is theirs"}
MANY = 50
"""Objects of others, at least, that are compared."""


def machine(name: str) -> vim.vm.ConfigSpec:
    return vim.vm.ConfigSpec(
        name=name,
        guestId="other3xLinux64Guest",
        files=vim.vm.FileInfo(vmPathName="[local]"),
        numCPUs=1,
        memoryMB=64,
    )


def twin_machines(si: Any, names: set[str]) -> None:
    """VMs of these names, in folders of two other teams."""
    find = si.content.searchIndex.FindByInventoryPath
    for team in ("teamA", "teamB"):
        folder = find("/dc/vm").CreateFolder(team)
        for name in sorted(names):
            WaitForTask(folder.CreateVM_Task(machine(name), find("/dc/host/farm/Resources")))


def strangers(sandbox: Running) -> dict[str, str]:
    """Path → all of the object that could be changed, of whatever stands in other people's places."""
    found = {}
    with administrator(sandbox) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.ManagedEntity], True)
        for each in view.view:
            path, at = [each.name], each.parent
            while at is not None and at != si.content.rootFolder:
                path.insert(0, at.name)
                at = at.parent
            where = "/".join(path)
            if any(part in where for part in ("teamA/", "teamB/", "abroad/", "compute/Resources/")):
                config = getattr(each, "config", None)
                found[where] = f"{each} {each.parent} {getattr(each, 'customValue', None)} {config}"
    return found


def written(path: Path, given: dict[str, Any], **site: Any) -> Path:
    given = {**given, **site}
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    return path


@dataclass
class Crowded:
    """A sandbox with other people's objects, which is started anew where its marks are taken out."""

    file: Path
    running: Running

    def forget(self) -> None:
        self.running = forget(self.running, self.file)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowded]:
    folder = tmp_path_factory.mktemp("untidy")
    file = untidy.world(folder)
    yield (crowded := Crowded(file, start(file, folder / "state", pace=0)))
    stop(crowded.running.state)


@pytest.fixture
def crowded(started: Crowded) -> Crowded:
    started.running.reset()
    return started


def test_every_kind_of_vcenter_and_one_of_each_other_group_lives_among_twins() -> None:
    assert {*LIVING} >= {*registry.names("vcenter")}
    assert {registry.groups()[kind] for kind in LIVING} == {*registry.GROUPS}


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["paths", "names"])
@pytest.mark.parametrize("kind", LIVING)
def test_a_life_among_twins_touches_none_of_them(
    kind: str, way: str, crowded: Crowded, tmp_path: Path
) -> None:
    example = yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader)
    (tmp_path / "sources").symlink_to(SPECS / "kinds/sources")
    site = written(tmp_path / "site.yaml", untidy.meant(example, paths=way == "paths"))
    tidy = untidy.objects(crowded.running)
    untidy.fill(crowded.running, untidy.Names.of(example))
    others, before = untidy.Others(crowded.running, tidy), world(crowded.running)
    assert len(others.objects) > MANY

    def anew() -> None:
        crowded.running.reset()
        untidy.fill(crowded.running, untidy.Names.of(example))

    survives(site, crowded.running, tmp_path / "state", anew)
    others.are_in(crowded.running)

    lives(site, crowded.running, others)
    assert (now := world(crowded.running)) == before, difference(now, before)

    if kind not in UNADOPTED:
        assert made(outcome := apply(site, crowded.running)), endings(outcome)
        crowded.forget()
        adopted = apply(site, crowded.running, adopt_all=True)
        assert made(adopted), endings(adopted)
        others.are_in(crowded.running)
        lives(site, crowded.running, others)

    for hand in of_kind(kind)[:1]:
        lives(
            written(site, untidy.meant(hand.site(kind, hand.said), paths=way == "paths")),
            crowded.running,
            others,
        )
        made(apply(site, crowded.running))
        written(site, untidy.meant(hand.site(kind, hand.changed), paths=way == "paths"))
        assert made(outcome := apply(site, crowded.running)), endings(outcome)
        lives(site, crowded.running, others)


def lives(site: Path, running: Running, others: untidy.Others) -> None:
    """It is made if it isn't, left as it is, and destroyed."""
    assert made(outcome := apply(site, running)), endings(outcome)
    assert plan(site, running).pending == ()
    found = drift(site, running)
    assert (found.found, found.unreadable) == ((), {})
    others.are_in(running)
    ended = endings(apply(site, running, destroy=True))
    assert {*ended.values()} <= {"done", "deleted", "kept"}, ended
    others.are_in(running)


@pytest.fixture
def mine(sandbox: Running, tmp_path: Path) -> Path:
    """A site that means the machine of team B, of which team A has one, too."""
    with administrator(sandbox) as si:
        twin_machines(si, {"db"})
    given = yaml.load(EXAMPLES["virtual_machine"].read_text(), yaml.BaseLoader)
    wanted = {"cluster": "farm", "datastore": "local", "cpus": 1, "memory": "64MiB", "power": "off"}
    given["virtual_machine"] = {"db": {**wanted, "template": "/dc/vm/centos-7.6", "folder": "teamB"}}
    given["vcenter"]["datacenter"] = "dc"
    return written(tmp_path / "site.yaml", given)


def test_the_machine_in_the_sites_folder_is_adopted_and_destroyed_and_its_twin_stays(
    mine: Path, sandbox: Running
) -> None:
    before = strangers(sandbox)
    apply(mine, sandbox, adopt=frozenset({Key("virtual_machine", "db")}))
    after = strangers(sandbox)
    assert [path for path in before if before[path] != after[path]] == ["dc/vm/teamB/db"]
    assert plan(mine, sandbox).pending == ()
    apply(mine, sandbox, destroy=True)
    assert before.keys() - strangers(sandbox).keys() == {"dc/vm/teamB/db"}
    assert strangers(sandbox)["dc/vm/teamA/db"] == before["dc/vm/teamA/db"]


def test_a_machine_whose_folder_is_not_written_is_new_and_its_namesakes_are_named(
    mine: Path, sandbox: Running
) -> None:
    mine.write_text(mine.read_text().replace("    folder: teamB\n", ""))
    found = plan(mine, sandbox)
    assert [str(item.action) for item in found.items if item.key.name == "db"] == ["create"]
    assert any("/dc/vm/teamA/db, /dc/vm/teamB/db" in str(each) for each in found.warnings), found.warnings


def test_a_template_that_two_folders_have_is_refused_with_their_paths(mine: Path, sandbox: Running) -> None:
    with administrator(sandbox) as si:
        twin = si.content.searchIndex.FindByInventoryPath("/dc/vm/teamA").CreateVM_Task
        WaitForTask(
            twin(machine("centos-7.6"), si.content.searchIndex.FindByInventoryPath("/dc/host/farm/Resources"))
        )
    text = mine.read_text().replace("/dc/vm/centos-7.6", "centos-7.6").replace("teamB", "''")
    mine.write_text(text)
    (problem,) = plan(mine, sandbox).problems
    assert (
        "2 templates are called centos-7.6; /dc/vm/centos-7.6, /dc/vm/teamA/centos-7.6; write the path"
        in str(problem)
    )


def test_what_init_writes_names_a_pools_cluster_by_its_path_and_nothing_of_another_datacenter(
    crowded: Crowded, tmp_path: Path
) -> None:
    elsewhere = "/abroad/elsewhere/host/farm/Resources"
    with administrator(crowded.running) as si:
        untidy.machines(
            untidy.find(si, "/abroad/elsewhere/vm"), ("alone",), untidy.find(si, elsewhere), "shared"
        )
        untidy.pools(si, "/dc/host/farm", ("gpu",))
    settings = {
        **yaml.load(EXAMPLES["resource_pool"].read_text(), yaml.BaseLoader)["vcenter"],
        "datacenter": "/dc",
    }
    site = init.empty("mine", settings, tmp_path, sandbox=crowded.running)
    kinds = frozenset({"resource_pool", "virtual_machine"})
    found = init.described(site, settings, only=kinds, context=run_context(crowded.running))
    pool = yaml.load(found.text, yaml.BaseLoader)["resource_pool"]["gpu"]
    assert pool["cluster"] == "/dc/host/farm"
    assert "alone" not in found.text
    assert found.differing == {}


def test_a_namesake_in_another_datacenter_is_nothing_to_warn_of(mine: Path, crowded: Crowded) -> None:
    with administrator(crowded.running) as si:
        pool = untidy.find(si, "/abroad/elsewhere/host/farm/Resources")
        untidy.machines(untidy.find(si, "/abroad/elsewhere/vm"), ("db",), pool, "shared")
        untidy.find(si, "/dc/vm").CreateFolder("teamB")
    mine.write_text(mine.read_text().replace("cluster: farm", "cluster: /dc/host/farm"))
    assert [str(each) for each in plan(mine, crowded.running).warnings] == []


@pytest.mark.thorough
def test_what_init_writes_of_it_leads_back_to_each_object_and_to_no_other(
    crowded: Crowded, tmp_path: Path
) -> None:
    example = yaml.load(EXAMPLES["virtual_machine"].read_text(), yaml.BaseLoader)
    untidy.fill(crowded.running, untidy.Names.of(example))
    settings = {**example["vcenter"], "datacenter": "/dc"}
    site = init.empty("mine", settings, tmp_path, sandbox=crowded.running)
    found = init.described(site, settings, context=run_context(crowded.running))
    path = tmp_path / "site.yaml"
    path.write_text(found.text)
    assert {*yaml.load(found.text, yaml.BaseLoader)} == {
        "site",
        "vcenter",
        *(key.kind for key in found.resources),
    }
    loaded = bfinfra.load(path, sandbox=crowded.running)
    assert {*loaded.resources} == {*found.resources}
    assert len(loaded.resources) > MANY / 5
    assert [key for key in loaded.resources if "abroad" in key.name] == []
    planned = plan(path, crowded.running, adopt=frozenset(loaded.resources))
    assert planned.problems == ()
    assert [item.key for item in planned.items if item.action.value == "create"] == []
    assert found.differing == {}


@pytest.mark.thorough
def test_two_supervisors_on_clusters_of_one_name_are_told_apart_by_their_paths(
    crowded: Crowded, tmp_path: Path
) -> None:
    given = yaml.load(EXAMPLES["supervisor"].read_text(), yaml.BaseLoader)
    (tmp_path / "sources").symlink_to(SPECS / "kinds/sources")
    own, theirs = "/dc/host/others/gpu/compute", "/dc/host/compute"
    given["vcenter"]["datacenter"] = "/dc"
    given["supervisor"] = {own: given["supervisor"]["farm"]}
    given["distributed_switch"] = {"pods": {"hosts": {"esx4.small.test": ["vmnic1"]}}}
    given["supervisor_namespace"] = {
        "here": {"cluster": own, "limits": {"cpu": "8GHz"}},
        "there": {"cluster": theirs, "limits": {"cpu": "8GHz"}},
    }
    site = written(tmp_path / "site.yaml", given)
    before = world(crowded.running)
    assert made(outcome := apply(site, crowded.running)), endings(outcome)
    assert plan(site, crowded.running).pending == ()
    found = drift(site, crowded.running)
    assert (found.found, found.unreadable) == ((), {})
    with by_hand.administrator(site, crowded.running) as vcenter:
        places: Any = [
            vcenter.rest.get(f"/api/vcenter/namespaces/instances/{name}") for name in ("here", "there")
        ]
        paths = {each.moid: each.where for each in vcenter.inventory.read().clusters}
    assert [paths[each["cluster"]] for each in places] == [own, theirs]

    given["supervisor_namespace"]["there"]["cluster"] = "compute"
    (problem,) = plan(written(site, given), crowded.running).problems
    assert f"2 clusters are called compute; {theirs}, {own}; write the path" in str(problem)

    given["supervisor_namespace"]["there"]["cluster"] = theirs
    written(site, given)
    settings = {**given["vcenter"]}
    described = init.described(
        init.empty(given["site"], settings, tmp_path, sandbox=crowded.running),
        settings,
        context=run_context(crowded.running),
    )
    assert {own, theirs} <= {key.name for key in described.resources if key.kind == "supervisor"}
    named = yaml.load(described.text, yaml.BaseLoader)["supervisor_namespace"]
    assert (named["here"]["cluster"], named["there"]["cluster"]) == (own, theirs)
    assert made(outcome := apply(site, crowded.running, destroy=True)), endings(outcome)
    assert (now := world(crowded.running)) == before, difference(now, before)

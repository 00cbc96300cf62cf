"""bfinfra doctor: each thing that would stop an apply is found, named, and comes with what to do; what is
in order is reported as such.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from kinds.checking import BAD, GOOD, SKIPPED, WARNING, diagnosed, messages
from kinds.lifecycle import SPECS, apply, made
from pyVim.task import WaitForTask
from rights.given import Site, administrator, give, other, paths, without
from rights.given import world as rights_world

import bfinfra
from bfinfra import sandbox as sandboxes
from bfinfra.app import privileges
from bfinfra.backends.images import Images
from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter
from bfinfra.cli import main
from bfinfra.doctor import local, vcenter
from bfinfra.kinds.checks import CheckContext
from bfinfra.model.rights import Use

EXAMPLE = SPECS / "kinds"


@pytest.fixture
def changed(tmp_path):
    """A kind's example with other words."""

    def make(kind, *changes):
        text = (EXAMPLE / f"{kind}.yaml").read_text()
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        (tmp_path / "site.yaml").write_text(text)
        return tmp_path / "site.yaml"

    return make


def test_all_is_well(sandbox):
    found = diagnosed(EXAMPLE / "bitfusion_server.yaml", sandbox)
    assert messages(found, BAD) == messages(found, WARNING) == messages(found, SKIPPED) == {}
    assert {each.check for each in found} >= {
        "local.packages",
        "servers.certificates",
        "vcenter.login",
        "vcenter.clock",
        "vcenter.rights",
        "vcenter.space",
        "vcenter.hosts",
    }


def test_it_writes_nothing_and_leaves_no_session(sandbox):
    diagnosed(EXAMPLE / "tanzu_cluster.yaml", sandbox)
    assert sandbox.tally()["written"] == 0
    assert sandbox.sessions()["vcenter"] == []


def test_a_missing_server_is_reported_once_and_the_rest_is_skipped(changed, sandbox):
    found = diagnosed(changed("gpu_host", ("vc.small.test", "gone.small.test")), sandbox)
    assert "gone.small.test:443" in messages(found, BAD)["servers.connections"]
    assert {"vcenter.version", "vcenter.clock", "vcenter.rights", "vcenter.hosts"} <= set(
        messages(found, SKIPPED)
    )


def test_a_wrong_password_is_tried_once(changed, sandbox, monkeypatch):
    monkeypatch.setenv("WRONG", "wrong")
    found = diagnosed(changed("gpu_host", ("{env: VCENTER_PASSWORD}", "{env: WRONG}")), sandbox)
    assert "vcenter.username" in messages(found, BAD)["vcenter.login"]
    assert sandbox.tally()["calls"]["vcenter"]["Login"] == 1


def test_a_certificate_that_is_not_trusted(changed, sandbox):
    found = diagnosed(changed("gpu_host", ("{ca_file: ca.pem}", f"{{sha256: '{'ab' * 32}'}}")), sandbox)
    assert "bfinfra trust vc.small.test:443" in messages(found, BAD)["servers.certificates"]


@pytest.mark.parametrize(("years", "health"), [(0, GOOD), (1.95, WARNING), (4, BAD)])
def test_a_certificate_that_ends(context, years, health):
    later = datetime.now(UTC) + timedelta(days=365 * years)
    found = list(vcenter.CHECKS["servers.certificates"](replace(context, now=lambda: later)))
    assert found[0].health is health, found


def test_a_clock_that_is_off(context):
    found = list(vcenter.clock(replace(context, now=lambda: datetime.now(UTC) + timedelta(minutes=10))))
    assert (found[0].health, found[0].what) == (WARNING, "its clock is 600 s behind ours")


@pytest.fixture
def context(sandbox):
    """What checks stand on, with a clock of its own."""
    site = bfinfra.load(EXAMPLE / "gpu_host.yaml", sandbox=sandbox)
    transport = Transport(read_only=True, route=sandbox.lookup)
    server = VCenter(site.vcenter, transport)
    yield CheckContext(
        site,
        privileges.privileges(site),
        transport,
        Clusters(transport, site.vcenter),
        Images(site, real=False),
        server,
        Path(),
    )
    server.close()
    transport.close()


def test_a_host_in_maintenance_and_one_that_is_not_there(changed, sandbox):
    with administrator(sandbox) as si:
        WaitForTask(paths(si)["/dc/host/farm/esx1.small.test"].EnterMaintenanceMode_Task(10))
    assert (
        "maintenance mode"
        in messages(diagnosed(EXAMPLE / "gpu_host.yaml", sandbox), WARNING)["vcenter.hosts"]
    )
    found = diagnosed(changed("gpu_host", ("esx1.small.test:", "esx7.small.test:")), sandbox)
    assert "did you mean" in messages(found, BAD)["vcenter.hosts"]


def test_a_cluster_without_a_supervisor(changed, sandbox):
    found = diagnosed(changed("supervisor_namespace", ("cluster: compute", "cluster: farm")), sandbox)
    assert "enable workload management" in messages(found, BAD)["vcenter.supervisors"]


def test_what_is_not_made_yet_is_no_fault(sandbox):
    found = diagnosed(EXAMPLE / "tanzu_cluster.yaml", sandbox)
    assert messages(found, BAD) == {}
    assert "apply creates it" in messages(found, SKIPPED)["clusters.entrance"]
    assert "clusters.tanzu" in messages(found, GOOD)


def test_what_is_made_is_looked_into(sandbox):
    assert made(apply(EXAMPLE / "tanzu_cluster.yaml", sandbox))
    found = diagnosed(EXAMPLE / "tanzu_cluster.yaml", sandbox)
    assert messages(found, BAD) == {}
    assert {each.about for each in found if each.check == "clusters.rights"} == {
        "supervisor_namespace/team-a",
        "tanzu_cluster/cluster-01",
    }


def test_a_kubeconfig_that_does_not_get_in_or_is_open_to_others(changed, sandbox, tmp_path):
    config = other(sandbox).config
    config["users"][0]["user"]["token"] = "old"
    (tmp_path / "old.kubeconfig").write_text(json.dumps(config))
    (tmp_path / "old.kubeconfig").chmod(0o644)
    found = diagnosed(changed("kubernetes_cluster", ("other.kubeconfig", "old.kubeconfig")), sandbox)
    assert "create the kubeconfig again" in messages(found, BAD)["clusters.entrance"]
    assert "chmod 600" in messages(found, WARNING)["local.files"]


def test_files_that_are_missing_or_damaged(changed, sandbox, tmp_path):
    whole = (Path(sandbox.files) / "server.ova").read_bytes()
    (tmp_path / "damaged.ova").write_bytes(whole[:-40_000] + bytes(20_000) + whole[-20_000:])
    found = diagnosed(
        changed("bitfusion_server", ("server.ova", "damaged.ova"), ("ca.pem", "none.pem")), sandbox
    )
    assert "none.pem" in messages(found, BAD)["local.references"]
    assert "damaged.ova" in messages(found, BAD)["local.packages"]


def test_a_journal_without_room(context, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 5})())
    found = list(local.state(context))
    assert found[0].health is BAD


def small_world(tmp_path, **changes):
    text = yaml.safe_load((SPECS / "worlds/small.yaml").read_text())
    for name, value in changes.items():
        text[name] = {**text[name], **value}
    (tmp_path / "world.yaml").write_text(yaml.safe_dump(text))
    return tmp_path / "world.yaml"


@pytest.fixture
def narrow(tmp_path):
    """A datastore with too little room, a vCenter that is too old, an old cluster."""
    world = small_world(
        tmp_path,
        datastores={"local": {"capacity": "64KiB", "clusters": ["farm"]}},
        kubernetes_clusters={"other": {"address": "10.3.0.1:6443", "version": "v1.15.3"}},
    )
    yield sandboxes.start(world, tmp_path / "state", pace=0)
    sandboxes.stop(tmp_path / "state")


def test_a_datastore_without_room_and_a_cluster_that_is_too_old(narrow):
    assert (
        "free some space, or choose another datastore"
        in messages(diagnosed(EXAMPLE / "bitfusion_server.yaml", narrow), BAD)["vcenter.space"]
    )
    assert (
        "server-side apply"
        in messages(diagnosed(EXAMPLE / "kubernetes_cluster.yaml", narrow), BAD)["clusters.versions"]
    )


def test_rights_that_are_lacking_are_named_with_their_place(tmp_path):
    with rights_world(tmp_path / "world") as small:
        for kind, lacks, check, what in (
            (
                "gpu_host",
                "Host.Config.PciPassthru",
                "vcenter.rights",
                "vcenter /dc/host/farm/esx1.small.test: the account lacks Host.Config.PciPassthru",
            ),
            (
                "token_secret",
                "create secrets",
                "clusters.rights",
                "the account may not create secrets in default",
            ),
        ):
            small.reset()
            site = Site.of(kind, tmp_path / kind)
            rights = site.rights(small, *Use)
            place = next(
                place
                for place, names in [*rights.entities.items(), *rights.apis.items()]
                if lacks
                in [name if isinstance(name, str) else f"{name.verb} {name.resource}" for name in names]
            )
            give(small, site, without(rights, place, lacks))
            found = diagnosed(site.path(), small)
            assert what in messages(found, BAD)[check]
            assert "bfinfra privileges SITE" in messages(found, BAD)[check]


def test_the_command_ends_with_1_where_anything_is_bad(changed, sandbox, capsys, monkeypatch):
    monkeypatch.setattr("bfinfra.cli.context.sandbox", lambda _: sandbox)
    assert main(["doctor", str(EXAMPLE / "gpu_host.yaml")]) == 0
    assert "Nothing would stop an apply" in capsys.readouterr().out
    assert main(["doctor", str(changed("gpu_host", ("esx1", "esx9"))), "--output", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["good"]
    assert {"check", "about", "health", "what", "why", "next"} == set(found["findings"][0])


def test_a_file_of_authorities_that_can_not_be_read_is_found_in_the_site(changed, sandbox, tmp_path):
    (tmp_path / "bad.pem").write_text("no certificate")
    site = changed("gpu_host", ("{ca_file: ca.pem}", f"{{ca_file: {tmp_path}/bad.pem}}"))
    about = {each.about for each in diagnosed(site, sandbox) if each.check == "local.files"}
    assert about == {"example"}

"""Each thing that the doctor can find and that no test of test_doctor.py brings about: told with what
to do.
"""

from __future__ import annotations

import socket
import stat
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from doctor.test_doctor import BAD, EXAMPLE, GOOD, SKIPPED, WARNING, said, seen
from kinds.lifecycle import apply, made
from pyVim.task import WaitForTask
from rights.given import administrator, paths

from bfinfra import app
from bfinfra.app.doctor import check_context
from bfinfra.backends.vcenter.esxi_settings import HostSetup
from bfinfra.backends.vcenter.namespaces import Catalog, Supervisor
from bfinfra.doctor import clusters, hosts, local, servers, vcenter
from bfinfra.doctor.blocked import Blocked
from bfinfra.model.errors import Denied
from bfinfra.model.refs import Key
from bfinfra.model.rights import Verb


@pytest.fixture
def on(sandbox):
    """What checks stand on for a kind's example."""

    @contextmanager
    def stand(kind, **changes):
        with check_context(
            app.load(EXAMPLE / f"{kind}.yaml", sandbox=sandbox), app.RunContext(sandbox=sandbox)
        ) as ground:
            yield replace(ground, **changes)

    return stand


def one(findings):
    (found,) = findings
    return found.health, f"{found.about}: {found.what}: {found.why} → {found.next}"


def test_authorities_that_are_none(sandbox, tmp_path):
    (tmp_path / "wrong.pem").write_text("no certificate")
    (tmp_path / "site.yaml").write_text(
        (EXAMPLE / "gpu_host.yaml").read_text().replace("ca.pem", "wrong.pem")
    )
    assert "give a PEM file" in said(seen(tmp_path / "site.yaml", sandbox), BAD)["local.files"]


@pytest.mark.parametrize(
    ("tool", "health", "words"),
    [
        (None, WARNING, "install docker or podman"),
        (SimpleNamespace(name="podman"), GOOD, "podman builds them"),
    ],
)
def test_what_builds_images(on, tool, health, words):
    with on(
        "client_image", images=SimpleNamespace(tool=lambda: (tool, "neither docker nor podman is here"))
    ) as ground:
        found = one(local.tools(ground))
    assert found[0] is health
    assert words in found[1]


def test_a_state_folder_that_may_not_be_written(on, monkeypatch):
    with on("gpu_host") as ground:
        monkeypatch.setattr(local.os, "access", lambda *_: False)
        assert "BFINFRA_STATE_HOME" in one(local.state(ground))[1]
        assert one(local.state(ground))[0] is BAD


def test_names_that_lead_somewhere_and_nowhere(on, monkeypatch):
    def lead(host, port, **_):
        if not addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 0, 0, "", (each, port)) for each in addresses]

    monkeypatch.setattr(servers.socket, "getaddrinfo", lead)
    with on("gpu_host") as ground:
        outside = replace(ground, seam=SimpleNamespace(routed=False))
        addresses = ["10.0.0.9", "10.0.0.8"]
        assert one(servers.names(outside)) == (GOOD, "vcenter vc.small.test: is 10.0.0.8, 10.0.0.9:  → ")
        addresses = []
        assert one(servers.names(outside)) == (
            BAD,
            (
                "vcenter vc.small.test: its name leads nowhere: Name or service not known → correct the "
                "name, or the machine's name servers"
            ),
        )


def test_a_certificate_that_has_not_begun(on):
    with on("gpu_host", now=lambda: datetime.now(UTC) - timedelta(days=9000)) as ground:
        health, words = one(servers.certificates(ground))
    assert health is BAD
    assert "its certificate begins on" in words
    assert "NTP" in words


def test_a_vcenter_that_is_newer_than_what_is_known(on, monkeypatch):
    with on("gpu_host") as ground:
        monkeypatch.setattr(ground.vcenter, "about", lambda: ("VMware vCenter Server 10.0", "10.0.0.0"))
        health, words = one(vcenter.version(ground))
    assert health is WARNING
    assert "upgrade bfinfra" in words


def test_a_place_that_is_not_there(sandbox, tmp_path):
    text = (
        (EXAMPLE / "bitfusion_server.yaml")
        .read_text()
        .replace("    gpus: 1\n", "    gpus: 1\n    folder: none/such\n")
    )
    (tmp_path / "site.yaml").write_text(text)
    assert (
        "/vm/none/such: there is nothing at this path"
        in said(seen(tmp_path / "site.yaml", sandbox), BAD)["vcenter.rights"]
    )


def test_a_host_that_vcenter_has_lost(on, sandbox):
    with administrator(sandbox) as si:
        WaitForTask(paths(si)["/dc/host/farm/esx1.small.test"].DisconnectHost_Task())
    with on("gpu_host") as ground:
        assert one(vcenter.hosts(ground)) == (
            BAD,
            (
                "gpu_host/esx1.small.test: vCenter has no connection to it:  → look at the host's state in "
                "vCenter"
            ),
        )


def test_a_datastore_that_is_out_of_reach(on, monkeypatch):
    with on("bitfusion_server") as ground:
        inventory = ground.entered().inventory.read()
        for stores, words in (
            ((), "reaches no datastore"),
            (tuple(replace(each, accessible=False) for each in inventory.datastores), "is not accessible"),
        ):
            monkeypatch.setattr(
                ground.vcenter.inventory, "read", lambda stores=stores: replace(inventory, datastores=stores)
            )
            found = list(vcenter.space(ground))
            assert found
            assert all(each.health is BAD and words in each.what and each.next for each in found)


def test_a_supervisor_that_does_not_run(on, monkeypatch):
    with on("tanzu_cluster") as ground:
        monkeypatch.setattr(
            type(ground), "catalog", Catalog({"compute": Supervisor("domain-c1", "", running=False)})
        )
        assert one(vcenter.supervisors(ground))[0] is BAD
        assert "workload management" in one(vcenter.supervisors(ground))[1]
        assert one(clusters.tanzu(ground)) == (
            SKIPPED,
            (
                "tanzu_cluster/cluster-01: whether run.tanzu.vmware.com/v1alpha1 is served: no supervisor "
                "runs on compute → "
            ),
        )
        assert list(clusters.certificates(ground)) == []


def test_a_supervisor_that_serves_no_such_api(on, monkeypatch):
    with on("tanzu_cluster") as ground:
        monkeypatch.setattr("bfinfra.backends.kubernetes.ClusterClient.serves", lambda *_: False)
        assert "kubectl api-versions" in one(clusters.tanzu(ground))[1]


@pytest.mark.parametrize(
    ("version", "health", "words"),
    [
        ("v1.15.12", BAD, "server-side apply"),
        ("v1.17.3", GOOD, "v1.17.3"),
        ("v1.99.0", WARNING, "try it with plan first"),
        ("v1.25.3", GOOD, "v1.25.3"),
    ],
)
def test_versions_of_clusters(on, monkeypatch, version, health, words):
    monkeypatch.setattr("bfinfra.backends.kubernetes.ClusterClient.version", lambda _: version)
    with on("kubernetes_cluster") as ground:
        found = one(clusters.versions(ground))
    assert found[0] is health
    assert words in found[1]


def test_a_cluster_whose_clock_is_off(on):
    with on("kubernetes_cluster", now=lambda: datetime.now(UTC) - timedelta(minutes=10, seconds=1)) as ground:
        health, words = one(clusters.clocks(ground))
    assert health is WARNING
    assert "s ahead of ours" in words
    assert "NTP" in words


def test_a_right_that_one_can_do_without(on, monkeypatch):
    monkeypatch.setattr(
        "bfinfra.backends.kubernetes.ClusterClient.can", lambda _, verb, resource, *__: resource != "spares"
    )
    with on("namespace") as ground:
        api = next(api for api in ground.rights.apis if api.cluster.kind == "kubernetes_cluster")
        optional = replace(
            ground, rights=replace(ground.rights, apis={api: (Verb("spares", "list", "then it looks less"),)})
        )
        health, words = one(clusters.rights(optional))
    assert health is WARNING
    assert "may not list spares" in words
    assert "then it looks less" in words


def test_supervisors_and_the_clusters_in_them_show_their_certificates(sandbox):
    assert made(apply(EXAMPLE / "tanzu_cluster.yaml", sandbox))
    found = [
        each
        for each in seen(EXAMPLE / "tanzu_cluster.yaml", sandbox)
        if each.check == "clusters.certificates"
    ]
    assert [each.health for each in found] == [GOOD] * 3
    assert [each.about.rpartition(":")[2] for each in found] == ["443", "6443", "6443"]
    assert [each.about.partition(" 10.")[0] for each in found] == ["supervisor on compute"] * 2 + [
        "tanzu_cluster/cluster-01"
    ]


def test_nobody_logs_in_to_a_supervisor_whose_certificate_is_not_trusted(sandbox, tmp_path):
    assert made(apply(EXAMPLE / "tanzu_cluster.yaml", sandbox))
    text = (
        (EXAMPLE / "tanzu_cluster.yaml")
        .read_text()
        .replace(
            "  trust: {ca_file: ca.pem}",
            f"  trust: {{ca_file: ca.pem}}\n  supervisor_trust: {{sha256: '{'ab' * 32}'}}",
        )
    )
    (tmp_path / "site.yaml").write_text(text)
    before = sandbox.tally()["calls"]
    found = seen(tmp_path / "site.yaml", sandbox)
    assert "bfinfra trust 10." in said(found, BAD)["clusters.certificates"]
    assert set(said(found, BAD)) == {"clusters.certificates"}
    assert "certificate is not trusted" in said(found, SKIPPED)["clusters.entrance"]
    assert said(found, SKIPPED)["clusters.tanzu"]
    after = sandbox.tally()["calls"]
    assert {door: calls for door, calls in after.items() if door not in ("vcenter", "rest")} == {
        door: calls for door, calls in before.items() if door not in ("vcenter", "rest")
    }


def test_a_file_of_secrets_that_is_its_owners_own(on, sandbox):
    with on("kubernetes_cluster") as ground:
        assert list(local.files(ground)) == []
        config = Path(sandbox.files) / "other.kubeconfig"
        assert stat.S_IMODE(config.stat().st_mode) == 0o600


SETUP = HostSetup(
    ("ntp.example.com",),
    True,
    "R740",
    "13006603",
    frozenset({"0000:3b:00.0 15b3:1015"}),
    "sharedDirect",
    "2.19.1",
)
VIBS = frozenset({"esx-base 8.0.3", "nmlx5-core 4.23"})
ON_SWITCH = SimpleNamespace(hosts={"a": (), "b": (), "c": ()})
ON_HOST = SimpleNamespace(host="a", vgpus=("grid_t4-16c",))


def told(check, setups, vibs=None, **specs):
    """What a check says of a site with these specs, on hosts that are set up so."""
    asked = SimpleNamespace(
        inventory=SimpleNamespace(
            read=lambda: SimpleNamespace(
                hosts=[SimpleNamespace(name=name, moid=f"host-{name}") for name in setups]
            )
        ),
        host_settings=SimpleNamespace(
            setups=lambda moids: {moid: setups[moid.removeprefix("host-")] for moid in moids},
            packages=lambda moids: installed(vibs or {}),
        ),
    )
    ground = SimpleNamespace(
        entered=lambda: asked, of=lambda kind: {Key(kind, "x"): specs[kind]} if kind in specs else {}
    )
    return [(found.health, f"{found.about}: {found.what}: {found.why}") for found in check(ground)]


@pytest.mark.parametrize(
    ("changes", "health", "words"),
    [
        ({}, GOOD, "keeps its time by ntp.example.com"),
        ({"ntp": ()}, WARNING, "no time servers"),
        ({"ntp_runs": False}, WARNING, "its NTP service does not run"),
    ],
)
def test_hosts_keep_their_time(changes, health, words):
    ((found, text),) = told(hosts.clocks, {"a": replace(SETUP, **changes)}, virtual_machine=ON_HOST)
    assert found is health
    assert words in text


@pytest.mark.parametrize(
    ("changes", "health", "words"),
    [
        ({}, GOOD, "its 3 hosts are alike: R740, build 13006603"),
        ({"build": "9"}, WARNING, "c has build 9, most have 13006603"),
        ({"model": "R640"}, WARNING, "c has model R640"),
        ({"firmware": "1"}, WARNING, "c has firmware 1, most have 2.19.1"),
        (
            {"cards": frozenset({"0000:5e:00.0 15b3:1015"})},
            WARNING,
            "c lacks 0000:3b:00.0 15b3:1015 and has 0000:5e:00.0 15b3:1015 besides",
        ),
    ],
)
def test_hosts_of_a_switch_are_alike(changes, health, words):
    ((found, text),) = told(
        hosts.alike, {"a": SETUP, "b": SETUP, "c": replace(SETUP, **changes)}, distributed_switch=ON_SWITCH
    )
    assert found is health
    assert words in text


def installed(vibs):
    if not isinstance(vibs, dict):
        raise vibs
    return {f"host-{name}": found for name, found in vibs.items()}


@pytest.mark.parametrize(
    ("third", "health", "words"),
    [
        (VIBS, GOOD, "its 3 hosts have the same 2 VIBs"),
        (frozenset({"esx-base 8.0.3"}), WARNING, "c: lacks nmlx5-core 4.23"),
        (
            VIBS - {"nmlx5-core 4.23"} | {"nmlx5-core 4.24"},
            WARNING,
            "c: lacks nmlx5-core 4.23 and has nmlx5-core 4.24 besides",
        ),
        (VIBS | {f"extra{n} 1" for n in range(9)}, WARNING, "extra4 1 besides (4 more)"),
    ],
)
def test_hosts_of_one_switch_have_the_same_vibs(third, health, words):
    ((found, text),) = told(
        hosts.software,
        dict.fromkeys("abc", SETUP),
        {"a": VIBS, "b": VIBS, "c": third},
        distributed_switch=ON_SWITCH,
    )
    assert found is health
    assert words in text


def test_hosts_whose_vibs_nobody_may_see_are_skipped():
    with pytest.raises(Blocked, match=r"Host\.Config\.Image"):
        told(hosts.software, dict.fromkeys("abc", SETUP), Denied("no"), distributed_switch=ON_SWITCH)
    assert told(hosts.software, dict.fromkeys("abc", SETUP), {"a": VIBS}, distributed_switch=ON_SWITCH) == []


@pytest.mark.parametrize(("type_", "health"), [("sharedDirect", GOOD), ("shared", BAD), ("", BAD)])
def test_hosts_of_machines_with_vgpus_share_their_cards_directly(type_, health):
    ((found, _),) = told(hosts.graphics, {"a": replace(SETUP, graphics=type_)}, virtual_machine=ON_HOST)
    assert found is health


def test_a_site_without_hosts_asks_for_none():
    for check in (hosts.clocks, hosts.alike, hosts.software, hosts.graphics):
        assert told(check, {}) == []

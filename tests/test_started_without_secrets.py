"""A site whose authorities, keys and secrets are files that somebody brings later: each holds back only what
needs it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kinds.lifecycle import apply, drift, endings, plan, run_context, world

import bfinfra
import bfinfra.sandbox
from bfinfra.cli.execute import EXITS
from bfinfra.model.awaited import UNNOTED, WHY
from bfinfra.render import text

pytestmark = pytest.mark.thorough

SPECS = Path(__file__).parents[1] / "specs"
SITE = """\
site: example
vcenter:
  server: vc.small.test
  username: admin@small.test
  password: {env: VCENTER_PASSWORD}
  trust: {ca_file: ca.pem}
pepper: {file: secrets/pepper}
drift:
  notify: {url: "https://hook.example.com/", secret: {file: secrets/hook}, trust: {ca_file: hook.pem}}
gpu_host:
  esx1.small.test:
    passthrough: [{vendor: 0x10de, device: 0x1eb8}]
    reboot: if_needed
bitfusion_server:
  bf-01:
    ova: {file: server.ova}
    host: esx1.small.test
    gpus: 1
    networks:
      Network 1: {network: VM Network, address: 10.2.0.5/24, gateway: 10.2.0.1}
    properties:
      hostname: bf-01.small.test
      customer_password: {file: secrets/customer}
      vcenter_username: admin@small.test
      vcenter_password: {env: VCENTER_PASSWORD}
kubernetes_cluster:
  other: {kubeconfig: {file: other.kubeconfig}}
namespace:
  apart: {cluster: other}
registry_credential:
  pull:
    cluster: other
    namespaces: [default]
    server: 10.1.0.3
    username: admin@small.test
    password: {file: secrets/registry}
supervisor_namespace:
  team-a:
    cluster: compute
    storage: {gold: 100GiB}
    vm_classes: [best-effort-small]
tanzu_cluster:
  cluster-01:
    namespace: team-a
    version: v1.22.9
    control_plane: {count: 1, vm_class: best-effort-small, storage_class: gold}
    workers: {workers: {count: 1, vm_class: best-effort-small, storage_class: gold}}
    trust: {corporate: corporate.pem}
linux_host:
  gpu-01:
    address: 10.5.0.1
    key: {file: ssh/id_ed25519}
    trust: {known_hosts: ssh/known_hosts}
  cpu-01:
    address: 10.5.0.11
    key: {file: ssh/other_key}
    trust: {known_hosts: ssh/known_hosts}
flexdirect_host:
  t4: {hosts: [gpu-01], package: flexdirect_1.11_amd64.deb, license: {file: secrets/license}}
  behind: {hosts: [cpu-01], package: flexdirect_1.11_amd64.deb}
"""
SECRETS = ("secrets/customer", "secrets/registry", "secrets/license", "corporate.pem", "ssh/other_key")
WAITING = {
    "bitfusion_server/bf-01": "secrets/customer",
    "registry_credential/pull": "secrets/registry",
    "tanzu_cluster/cluster-01": "corporate.pem",
    "linux_host/cpu-01": "ssh/other_key",
}
FREE = {"gpu_host/esx1.small.test", "namespace/apart", "supervisor_namespace/team-a", "linux_host/gpu-01"}


@dataclass
class StartedSite:
    """A site without its secrets, and the sandbox that it is applied to."""

    sandbox: bfinfra.sandbox.Running
    path: Path

    @property
    def files(self) -> Path:
        return Path(self.sandbox.files)

    def bring(self, name: str, text: str = "a-value-1") -> None:
        (self.files / name).parent.mkdir(exist_ok=True)
        (self.files / name).write_text(text)

    def write(self, *, without: tuple[str, ...] = ()) -> None:
        """The site, without the resources that Ansible sets up, and without these."""
        output = SITE
        for block in without:
            assert output.count(block) == 1, block
            output = output.replace(block, "")
        self.path.write_text(output)

    def apply(self, **how: object) -> tuple[int, dict[str, str]]:
        outcome = apply(self.path, self.sandbox, **how)
        return EXITS.get(outcome.ending, 1), endings(outcome)


FLEXDIRECT = SITE[SITE.index("flexdirect_host:") :]


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[StartedSite]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    running = bfinfra.sandbox.start(SPECS / "worlds/small.yaml", tmp_path / "sandbox", pace=0)
    try:
        found = StartedSite(running, tmp_path / "site.yaml")
        found.bring("secrets/pepper")
        found.write()
        yield found
    finally:
        bfinfra.sandbox.stop(tmp_path / "sandbox")


def test_each_missing_file_holds_back_only_what_needs_it_until_it_is_brought(site):
    warned = [each.problem.what for each in bfinfra.load(site.path, sandbox=site.sandbox).warnings]
    for name in SECRETS:
        assert any(what.endswith(f"{name} is not there yet") for what in warned), (name, warned)
    found = plan(site.path, site.sandbox)
    assert not found.problems
    assert not found.unreadable
    held = {str(item.key): item.held for item in found.held}
    assert {address: f"{address}: {name} is not there yet" for address, name in WAITING.items()} == {
        address: held[address].what for address in WAITING
    }
    assert all(held[address].next and held[address].where for address in WAITING)
    assert held["flexdirect_host/t4"].what == "flexdirect_host/t4: secrets/license is not there yet"
    assert held["flexdirect_host/behind"].what == "flexdirect_host/behind waits for linux_host/cpu-01"
    assert FREE.isdisjoint(held)
    site.write(without=(FLEXDIRECT,))
    before = world(site.sandbox)
    code, ended = site.apply()
    assert code == 3
    assert all(ended[address].startswith("still-waiting") for address in WAITING)
    assert FREE & ended.keys() <= {address for address, how in ended.items() if how in ("done", "kept")}
    site.bring("secrets/customer")
    site.bring("secrets/registry", "a-registry-password")
    shutil.copy(site.files / "ca.pem", site.files / "corporate.pem")
    shutil.copy(site.files / "ssh/id_ed25519", site.files / "ssh/other_key")
    code, ended = site.apply()
    assert (code, set(ended.values())) == (0, {"done", "kept"})
    assert site.apply()[0] == 0

    for name in ("secrets/customer", "secrets/registry", "corporate.pem"):
        (site.files / name).unlink()
    output = drift(site.path, site.sandbox)
    assert (output.found, output.problems, output.blind) == ((), (), False)
    assert plan(site.path, site.sandbox).held == ()
    written = site.sandbox.tally()["written"]
    assert site.apply()[0] == 0
    assert site.sandbox.tally()["written"] == written

    (site.files / "secrets/pepper").unlink()
    code, ended = site.apply(destroy=True)
    assert (code, set(ended.values())) == (0, {"done"})
    assert world(site.sandbox) == before


def test_a_machine_whose_known_hosts_are_not_there_is_never_asked(site):
    site.write(without=(FLEXDIRECT,))
    for name in ("secrets/customer", "secrets/registry"):
        site.bring(name)
    shutil.copy(site.files / "ca.pem", site.files / "corporate.pem")
    shutil.copy(site.files / "ssh/id_ed25519", site.files / "ssh/other_key")
    (site.files / "ssh/known_hosts").unlink()
    held = {str(item.key): item.held.what for item in plan(site.path, site.sandbox).held}
    assert held == {
        f"linux_host/{name}": f"linux_host/{name}: ssh/known_hosts is not there yet"
        for name in ("gpu-01", "cpu-01")
    }
    found = drift(site.path, site.sandbox)
    assert found.blind
    assert "ssh/known_hosts is not there yet" in found.unreadable["linux_host/gpu-01"]
    before = site.sandbox.tally()["written"]
    with pytest.raises(bfinfra.BfinfraError, match="known_hosts"):
        site.apply(destroy=True)
    assert site.sandbox.tally()["written"] == before


def test_an_unset_variable_is_still_an_error_before_anything_is_written(site, monkeypatch):
    text = site.path.read_text().replace("{file: secrets/registry}", "{env: NOT_SET}")
    site.path.write_text(text)
    with pytest.raises(bfinfra.SiteError, match="NOT_SET"):
        plan(site.path, site.sandbox)


def test_a_value_that_changed_in_the_file_while_its_secret_is_away_waits_for_it(site):
    site.write(without=(FLEXDIRECT,))
    for name in ("secrets/customer", "secrets/registry"):
        site.bring(name)
    shutil.copy(site.files / "ca.pem", site.files / "corporate.pem")
    shutil.copy(site.files / "ssh/id_ed25519", site.files / "ssh/other_key")
    assert site.apply()[0] == 0
    site.path.write_text(
        site.path.read_text()
        .replace("secrets/registry", "secrets/registry-2")
        .replace("secrets/customer", "secrets/customer-2")
        .replace("corporate: corporate.pem", "corporate: corporate-2.pem")
    )
    held = {str(item.key): item.held.what for item in plan(site.path, site.sandbox).held}
    assert held == {
        "bitfusion_server/bf-01": "bitfusion_server/bf-01: secrets/customer-2 is not there yet",
        "registry_credential/pull": "registry_credential/pull: secrets/registry-2 is not there yet",
        "tanzu_cluster/cluster-01": "tanzu_cluster/cluster-01: corporate-2.pem is not there yet",
    }


VCENTERS = {"gpu_host/esx1.small.test", "bitfusion_server/bf-01", "supervisor_namespace/team-a"}


@pytest.mark.parametrize(
    ("missing", "written"), [("ca.pem", ""), ("secrets/vcenter", "password: {file: secrets/vcenter}")]
)
def test_without_what_leads_into_vcenter_all_that_lives_there_waits_and_nothing_else(site, missing, written):
    site.write(without=(FLEXDIRECT,))
    for name in ("secrets/customer", "secrets/registry"):
        site.bring(name)
    shutil.copy(site.files / "ca.pem", site.files / "corporate.pem")
    shutil.copy(site.files / "ssh/id_ed25519", site.files / "ssh/other_key")
    if written:
        output = site.path.read_text()
        site.path.write_text(output.replace("  password: {env: VCENTER_PASSWORD}\n", f"  {written}\n"))
    else:
        (site.files / missing).rename(site.files / "away.pem")
    found = plan(site.path, site.sandbox)
    assert (found.problems, found.unreadable) == ((), {})
    held = {str(item.key): item.held for item in found.held}
    assert held.keys() == {*VCENTERS, "tanzu_cluster/cluster-01"}
    assert {held[address].what for address in VCENTERS} == {
        f"{address}: {missing} is not there yet" for address in VCENTERS
    }
    code, ended = site.apply()
    assert code == 3
    assert {address for address, how in ended.items() if how == "done"} == {
        "namespace/apart",
        "registry_credential/pull",
    }
    report = drift(site.path, site.sandbox)
    assert report.blind
    assert report.unreadable.keys() == held.keys()
    assert report.found == ()
    before = site.sandbox.tally()["written"]
    with pytest.raises(bfinfra.SiteError, match="leads nowhere"):
        bfinfra.kubeconfig(
            bfinfra.load(site.path, sandbox=site.sandbox), "cluster-01", context=run_context(site.sandbox)
        )
    with pytest.raises(bfinfra.BfinfraError, match="leads nowhere"):
        site.apply(destroy=True)
    assert site.sandbox.tally()["written"] == before
    if written:
        site.bring(missing, site.sandbox.env["VCENTER_PASSWORD"])
    else:
        (site.files / "away.pem").rename(site.files / missing)
    assert site.apply()[0] == 0


def test_where_nothing_of_a_vcenter_is_wanted_what_leads_into_it_must_be_there(site):
    at = SITE.index("gpu_host:"), SITE.index("kubernetes_cluster:"), SITE.index("supervisor_namespace:")
    site.path.write_text(SITE[: at[0]] + SITE[at[1] : at[2]])
    (site.files / "ca.pem").unlink()
    with pytest.raises(bfinfra.SiteError, match=r"vcenter\.trust\.ca_file leads nowhere"):
        plan(site.path, site.sandbox)


def test_a_plan_reports_a_file_that_waits_once_and_with_one_reason(site):
    site.write(without=(FLEXDIRECT,))
    found = plan(site.path, site.sandbox)
    output = text.plan(found)
    assert output.count("corporate.pem is not there yet") == 1
    why = {str(item.key): item.held.why for item in found.held}
    assert (why["tanzu_cluster/cluster-01"], why["bitfusion_server/bf-01"]) == (UNNOTED, WHY)

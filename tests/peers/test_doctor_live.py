"""bfinfra doctor on live peers: what is in order is reported as such, and nothing is written or left."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from peers.conftest import Vcsim, vcsim_site
from peers.found import Peers
from peers.sites import in_kubernetes, names

import bfinfra
from bfinfra.model.finding import Finding, Health

pytestmark = pytest.mark.peers


def about(found: tuple[Finding, ...], *health: Health) -> set[str]:
    return {each.check for each in found if each.health in health}


def test_a_vcsim(vcsim: Vcsim, tmp_path: Path, ova: Path) -> None:
    """Its hosts have names that lead nowhere and no time servers, and it says that whoever gets in has every
    right.
    """
    site = vcsim_site(vcsim.peers, tmp_path, ova)
    found = bfinfra.diagnose(site.load())
    assert about(found, Health.BAD, Health.WARNING, Health.SKIPPED) == {"servers.connections", "hosts.clocks"}
    assert about(found, Health.GOOD) >= {
        "servers.certificates",
        "vcenter.login",
        "vcenter.version",
        "vcenter.clock",
        "vcenter.rights",
        "vcenter.hosts",
        "vcenter.space",
    }
    assert not [line for line in vcsim.govc("session.ls").splitlines() if "bfinfra" in line]


def test_a_vcsim_that_is_not_as_it_should_be(vcsim: Vcsim, tmp_path: Path, ova: Path) -> None:
    vcsim.govc("host.maintenance.enter", "DC0_C0_H0")
    site = vcsim_site(vcsim.peers, tmp_path, ova)
    site.given["gpu_host"]["DC0_C0_H9"] = dict(site.given["gpu_host"]["DC0_C0_H0"])
    trust, site.given["vcenter"]["trust"] = site.given["vcenter"]["trust"], {"sha256": "ab" * 32}
    assert about(bfinfra.diagnose(site.load()), Health.BAD) >= {"servers.certificates", "vcenter.login"}
    site.given["vcenter"]["trust"] = trust
    found = {str(each.about): each for each in bfinfra.diagnose(site.load()) if each.check == "vcenter.hosts"}
    assert found["gpu_host/DC0_C0_H0"].what == "it is in maintenance mode"
    assert found["gpu_host/DC0_C0_H9"].health is Health.BAD
    site.put("vcsim.password", "wrong")
    assert "vcenter.login" in about(bfinfra.diagnose(site.load()), Health.BAD)


def test_a_kube_apiserver(peers: Peers, tmp_path: Path) -> None:
    with in_kubernetes(peers, tmp_path) as site:
        found = bfinfra.diagnose(site.load())
        assert about(found, Health.BAD, Health.SKIPPED) == set()
        assert about(found, Health.GOOD) >= {
            "clusters.entrance",
            "clusters.versions",
            "clusters.clocks",
            "clusters.rights",
        }
        assert "chmod 600" in next(each.next for each in found if each.check == "local.files")
        assert names(peers, site) == set()
        config = yaml.safe_load(peers.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": "wrong"}
        site.put("admin.kubeconfig", yaml.safe_dump(config))
        assert "clusters.entrance" in about(bfinfra.diagnose(site.load()), Health.BAD)

"""A cluster by kubeadm on real machines: the role, real dpkg and systemd, secrets that are on no command
line. kubeadm and kubectl are stand-ins, and the API is a real kube-apiserver.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import endings
from peers.found import Peers
from peers.machines import WANTS, Real, hosts_of, own, running

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.model.refs import Key
from bfinfra.sandbox.factories.deb import make_deb

pytestmark = pytest.mark.packages
BY_KUBEADM = (WANTS, "var/lib/kube", "etc/fstab")

KUBEADM = """#!/bin/sh
echo "$@" >> /var/lib/kubeadm.calls
case "$1" in
init) [ -e /etc/kubernetes/kubelet.conf ] && { echo "kubelet.conf already exists" >&2; exit 1; }
  mkdir -p /etc/kubernetes/pki && cp /srv/admin.conf /etc/kubernetes/admin.conf && cp /srv/kubelet.conf /etc/kubernetes/ && cp /srv/ca.crt /etc/kubernetes/pki/ ;;
join) [ -e /etc/kubernetes/kubelet.conf ] && { echo "kubelet.conf already exists" >&2; exit 1; }
  grep -q '"token": "[a-z0-9]*\\.[a-z0-9]*"' "$3" || { echo "no token in $3" >&2; exit 1; }
  [ "$(stat -c %a "$3")" = 600 ] || { echo "$3 can be read by others" >&2; exit 1; }
  [ -e /srv/broken ] && { echo "[ERROR CRI]: container runtime is not running" >&2; exit 1; }
  mkdir -p /etc/kubernetes/pki && cp /srv/kubelet.conf /etc/kubernetes/ && cp /srv/ca.crt /etc/kubernetes/pki/ ;;
reset) rm -rf /etc/kubernetes ;;
esac
"""
KUBECTL = (
    '#!/bin/sh\necho "$@" >> /var/lib/kubectl.calls\n[ "$3" = get ] && printf '
    '"node/machine-1\\nnode/machine-2\\n"; true\n'
)
KUBELET = (
    "[Unit]\nDescription=stand-in\n[Service]\nExecStart=/bin/sleep "
    "100000\n[Install]\nWantedBy=multi-user.target\n"
)
ONCE = "nodes"
KEY = Key("kubeadm_cluster", "rdg")
CNI = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pod-network, namespace: default}\ndata: {network: "
    "10.244.0.0/16}\n"
)


@pytest.fixture
def real(tmp_path: Path, peers: Peers) -> Any:
    with running(tmp_path / "machines", "machine-1", "machine-2") as found:
        admin = yaml.safe_load(Path(peers.kubeconfig).read_text())
        cluster, user = admin["clusters"][0]["cluster"], admin["users"][0]["user"]
        for holder in (cluster, user):  # kubeadm's has all of it in it
            for name in [
                name
                for name in holder
                if f"{name}-data"
                in ("certificate-authority-data", "client-certificate-data", "client-key-data")
            ]:
                holder[f"{name}-data"] = base64.b64encode(Path(holder.pop(name)).read_bytes()).decode()
        kubelet = {
            "kind": "Config",
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "k", "user": {"client-certificate": "/var/lib/kubelet/pki/current.pem"}}],
        }
        for each in found:
            each.write("/srv/kubelet.conf", yaml.safe_dump(kubelet, width=1 << 20))
            each.write("/srv/ca.crt", "the authority\n")
            each.write("/etc/fstab", "/dev/sda1 / ext4 defaults 0 1\n/dev/sda2 none swap sw 0 0\n")
        found[0].write(
            "/usr/local/bin/kubectl", KUBECTL
        )  # not in the package: some machine's own kubectl may be another package's
        found[0].run("chmod", "755", "/usr/local/bin/kubectl")
        found[0].write("/srv/admin.conf", yaml.safe_dump(admin, width=1 << 20))
        yield found


def endings_of(path: Path, **how: Any) -> str:
    allow = Allow(
        every_delete=True, every_disruption=True, delete=frozenset({KEY})
    )  # the cluster is everybody's: whatever is in it would count as others'
    return endings(
        bfinfra.apply(bfinfra.load(path), approve=lambda _: allow, options=Options(deadline=600), **how)
    )[str(KEY)]


@pytest.fixture
def nodes(alone: None, peers: Peers) -> Any:
    """What kubelets would register; kwok says that they are ready. Others wait for what every node offers:
    one test at a time.
    """
    made = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/hostname": name},
            },
        }
        for name in ("machine-1", "machine-2")
    ]
    text = yaml.safe_dump_all(made)
    peers.kubectl("apply", "-f", "-", given=text)
    yield None
    peers.kubectl("delete", "--ignore-not-found", "-f", "-", given=text)
    peers.kubectl("delete", "configmap", "--ignore-not-found", "-n", "default", "pod-network")
    peers.kubectl("delete", "configmap", "--ignore-not-found", "-n", "kube-system", "bfinfra-pod-network")


@pytest.mark.thorough
def test_a_cluster_comes_stays_and_goes_and_one_worker_fails_at_first(
    real: list[Real], nodes: None, peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    first, worker = real
    make_deb(
        tmp_path / "kube_1_all.deb",
        package="kube-stand-in",
        version="1",
        architecture="all",
        programs={"kubeadm": KUBEADM},
        units={"kubelet.service": KUBELET},
    )
    (tmp_path / "cni.yaml").write_text(CNI)
    hosts = hosts_of(real)
    cluster = {
        "control_plane": first.name,
        "workers": [worker.name],
        "version": "v1.20.15",
        "cni": "cni.yaml",
        "packages": ["kube_1_all.deb"],
        "modules": [],
        "sysctl": {"net.ipv4.ip_forward": "1"},
    }
    site = tmp_path / "site.yaml"
    site.write_text(
        yaml.safe_dump({"site": "by-kubeadm", "linux_host": hosts, "kubeadm_cluster": {"rdg": cluster}})
    )
    before = [own(each, *BY_KUBEADM) for each in real]
    worker.write("/srv/broken", "")
    ended = endings_of(site)
    assert "container runtime is not running" in ended, ended
    worker.run("rm", "/srv/broken")
    assert endings_of(site) == "done"
    assert worker.read("/etc/fstab").splitlines()[1] == "#bfinfra: /dev/sda2 none swap sw 0 0"
    assert worker.run("systemctl", "is-enabled", "kubelet.service").strip() == "enabled"
    assert (
        peers.kubectl(
            "get",
            "secrets",
            "-n",
            "kube-system",
            "-o",
            'jsonpath={.items[?(@.type=="bootstrap.kubernetes.io/token")].metadata.name}',
        )
        == ""
    ), "the token went with its step"
    output = worker.read("/var/lib/kubeadm.calls")
    assert (
        "join --discovery-file /var/lib/bfinfra/kubeadm_cluster.discovery" in output and "token" not in output
    )
    written = [each.written() for each in real]
    assert bfinfra.plan(bfinfra.load(site)).pending == ()
    assert endings_of(site) == "kept"
    assert [each.written() for each in real] == written
    key = yaml.safe_load(first.read("/etc/kubernetes/admin.conf"))["users"][0]["user"]["client-key-data"]
    journal = "".join(path.read_text() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert journal and key not in journal
    cluster["workers"] = []
    site.write_text(
        yaml.safe_dump({"site": "by-kubeadm", "linux_host": hosts, "kubeadm_cluster": {"rdg": cluster}})
    )
    assert endings_of(site) == "done"
    assert (
        "drain --ignore-daemonsets --delete-emptydir-data --force --timeout 300s -- machine-2"
        in first.read("/var/lib/kubectl.calls")
    )
    assert endings_of(site, destroy=True) == "done"
    assert [own(each, *BY_KUBEADM) for each in real] == before
    assert "swap" in worker.read("/etc/fstab") and "bfinfra" not in worker.read("/etc/fstab")

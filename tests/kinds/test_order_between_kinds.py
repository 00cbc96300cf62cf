"""What each kind needs of others that no field of it names; where the site provides it, it comes first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import bfinfra
from bfinfra.engine.graph import waits
from bfinfra.kinds import names, spec
from bfinfra.model.order import Ordered
from bfinfra.model.refs import Key, kinds_named

CLUSTER = "kubernetes_cluster: {k: {kubeconfig: {env: K}}, l: {kubeconfig: {env: L}}}"
SERVICE_VM = (
    "service_vm: {d: {namespace: s, image: {library: l, item: i}, vm_class: large, storage_class: k8s-gold}}"
)
VKS = (
    "vks_cluster: {v: {namespace: s, cluster_class: builtin-generic-v3.6.0, version: v1.34, os: ubuntu-24.04, "
    "vm_class: large, storage_class: gold, control_plane: {count: 1}, workers: {w: {count: 1}}}}"
)
TKC = (
    "tanzu_cluster: {c: {namespace: s, version: v1.20, control_plane: {count: 1, vm_class: small, "
    "storage_class: k8s-gold}, workers: {w: {count: 1, vm_class: large, storage_class: k8s-gold}}}}"
)
GPU_OPERATOR = "gpu_operator: {g: {cluster: k, namespace: gpus, files: [pod.yaml]}}"
HOST_IMAGE = (
    "host_image: {i: {cluster: compute, components: {NVIDIA-vGPU: 580.95.02}, depot: {url: "
    "'https://repo/vgpu.zip'}, remediate: if_needed, accept_eula: true}}"
)
SPACE = "supervisor_namespace: {s: {cluster: compute}}"
INSIDE = "{address: 10.0.0.%s, key: {env: KEY}, trust: {known_hosts: kh}%s}"
MACHINES = f"linux_host: {{a: {INSIDE % (1, '')}, b: {INSIDE % (2, '')}, c: {INSIDE % (3, '')}}}"
KUBEADM = "kubeadm_cluster: {r: {control_plane: a, workers: [b], version: v1.20.15, cni: calico.yaml}}"
TOOLKIT = "nvidia_container_toolkit: {t: {hosts: [%s], packages: [t.deb]}}"
LICENSE = "vgpu_license: {v: {hosts: [%s], server: 172.16.7.5}}"
MPI = "mpi_job: {j: {cluster: %s, image: tf, command: [train], workers: 2, transport: tcp}}"
PLUGIN = "bitfusion_device_plugin: {p: {cluster: %s}}"
TOKEN = "bitfusion_token: {t: {source: {tar: t.tar}}}"
SERVER = (
    "gpu_host: {h: {}}\nbitfusion_server: {bf: {ova: {file: bf.ova}, host: h, gpus: 1, networks: {Network "
    "1: {network: VM Network, address: 10.1.0.5/24}}%s}}"
)
MACHINE = "virtual_machine: {m: {template: centos, cluster: compute, datastore: d, cpus: 4, memory: 16GiB%s}}"
WORK = "workload: {w: {cluster: %s, manifest: pod.yaml%s}}"
FLEX = "flexdirect_host: {f: {hosts: [b], package: f.deb, scheduler: {gpus: 1}}}"
OTHER = "workload: {other: {cluster: k, manifest: claim.yaml}}"
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def pod(*, of: Mapping[str, Any] | None = None, **container: Any) -> Mapping[str, Any]:
    """A Pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "busybox:1", **container}], **(of or {})},
    }


def order(folder: Path, *texts: str, manifest: Mapping[str, Any] | None = None) -> dict[str, dict[str, str]]:
    """Address → what it waits for, and why."""
    (folder / "pod.yaml").write_text(json.dumps(manifest or pod()))
    (folder / "claim.yaml").write_text(json.dumps(CLAIM))
    vcenter = "vcenter: {server: v}"
    found: dict[str, list[str]] = {}
    for text in (CLUSTER, vcenter, *texts):
        for line in text.splitlines():
            kind, _, rest = line.partition(": ")
            found.setdefault(kind, []).append(rest.strip()[1:-1])
    (folder / "site.yaml").write_text(
        "site: example\n" + "".join(f"{kind}: {{{', '.join(parts)}}}\n" for kind, parts in found.items())
    )
    before = waits(bfinfra.load(folder / "site.yaml").resources, {})
    return {str(key): {str(other): why for other, why in first.items()} for key, first in before.items()}


POD = "workload/w"
ASKS = pod(resources={"limits": {"bitfusion.io/gpu-amount": 1}}, command=["python", "a.py"]) | {
    "metadata": {
        "name": "p",
        "annotations": {
            "auto-management/bitfusion": "all",
            "bitfusion-client/os": "ubuntu20",
            "bitfusion-client/version": "450",
        },
    }
}
NVIDIA = pod(resources={"requests": {"nvidia.com/gpu": 1}})
VOLUME = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
FOLDER = {"volumes": [{"name": "f", "hostPath": {"path": "/etc/bitfusionio/"}}]}
PULL = {"imagePullSecrets": [{"name": "cred"}]}
ENV = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "cred", "key": "x"}}}]}
CRED = (
    "registry_credential: {cred: {cluster: %s, namespaces: [default], server: r, username: u, password: "
    "{env: P}}}"
)
IMAGE = "container_image: {i: {image: %s, source: .}}"
CLIENT = "client_image: {c: {image: 'r/app:1', base: 'r/base:1', package: c.deb, context: out}}"

FOUND = [
    (
        "pods and the device plug-in",
        [PLUGIN % "k", WORK % ("k", "")],
        ASKS,
        POD,
        "bitfusion_device_plugin/p",
        "bitfusion.io/gpu on kubernetes_cluster/k",
    ),
    (
        "pods and claims of others",
        [OTHER, WORK % ("k", "")],
        pod(of=VOLUME),
        POD,
        "workload/other",
        "PersistentVolumeClaim default/data on kubernetes_cluster/k",
    ),
    (
        "pods and pull secrets",
        [CRED % "k", WORK % ("k", "")],
        pod(of=PULL),
        POD,
        "registry_credential/cred",
        "Secret default/cred on kubernetes_cluster/k",
    ),
    (
        "pods and variables",
        [CRED % "k", WORK % ("k", "")],
        pod(**ENV),
        POD,
        "registry_credential/cred",
        "Secret default/cred on kubernetes_cluster/k",
    ),
    (
        "pods and images",
        [IMAGE % "docker.io/library/busybox:1", WORK % ("k", "")],
        None,
        POD,
        "container_image/i",
        "image busybox:1",
    ),
    (
        "pods and client images",
        [CLIENT, WORK % ("k", "")],
        pod(image="r/app:1"),
        POD,
        "client_image/c",
        "image r/app:1",
    ),
    (
        "pods and namespaces of another name",
        ["namespace: {n: {cluster: k, namespace: train}}", WORK % ("k", ", namespace: train")],
        None,
        POD,
        "namespace/n",
        "namespace train on kubernetes_cluster/k",
    ),
    (
        "Bitfusion and ways that are tried",
        ["network_path: {n: {cluster: k, addresses: [10.1.0.5]}}", WORK % ("k", ", gpus: 1")],
        None,
        POD,
        "network_path/n",
        "a way to the Bitfusion servers from namespace default on kubernetes_cluster/k",
    ),
    (
        "Bitfusion without a token",
        [SERVER % "", WORK % ("k", ", gpus: 1")],
        None,
        POD,
        "bitfusion_server/bf",
        "Bitfusion servers",
    ),
    (
        "FlexDirect",
        [MACHINES, FLEX, WORK % ("k", ", gpus: 1, by: flexdirect")],
        pod(args=["a"]),
        POD,
        "flexdirect_host/f",
        "FlexDirect",
    ),
    (
        "FlexDirect's folder",
        [MACHINES, FLEX, "flexdirect_pool: {q: {servers: [f], hosts: [c]}}", WORK % ("k", "")],
        pod(of=FOLDER),
        POD,
        "flexdirect_pool/q",
        "lists of FlexDirect servers",
    ),
    (
        "FlexDirect on known nodes",
        [MACHINES, KUBEADM, FLEX, WORK % ("r", ", gpus: 1, by: flexdirect")],
        pod(args=["a"]),
        POD,
        "flexdirect_host/f",
        "FlexDirect on linux_host/b",
    ),
    (
        "lists and the program",
        [
            MACHINES,
            FLEX,
            "flexdirect_host: {g: {hosts: [c], package: f.deb}}",
            "flexdirect_pool: {q: {servers: [f], hosts: [c]}}",
        ],
        None,
        "flexdirect_pool/q",
        "flexdirect_host/g",
        "FlexDirect on linux_host/c",
    ),
    (
        "pods and NVIDIA's GPUs",
        [MACHINES, KUBEADM, LICENSE % "b", WORK % ("r", "")],
        NVIDIA,
        POD,
        "vgpu_license/v",
        "vGPU license on linux_host/b",
    ),
    (
        "jobs and licenses",
        [MACHINES, KUBEADM, LICENSE % "b, a", MPI % "r"],
        None,
        "mpi_job/j",
        "vgpu_license/v",
        "vGPU license on linux_host/a and 1 more",
    ),
    (
        "jobs and the toolkit on nodes that nobody names",
        [MACHINES, TOOLKIT % "c", MPI % "k"],
        None,
        "mpi_job/j",
        "nvidia_container_toolkit/t",
        "GPUs in containers",
    ),
    (
        "jobs and GPUs",
        ["nvidia_device_plugin: {n: {cluster: k}}", MPI % "k"],
        None,
        "mpi_job/j",
        "nvidia_device_plugin/n",
        "nvidia.com/gpu on kubernetes_cluster/k",
    ),
    (
        "jobs and parts of GPUs",
        [
            "nvidia_device_plugin: {n: {cluster: k}}",
            MPI.replace("tcp", "tcp, gpu_resource: nvidia.com/mig-1g.5gb") % "k",
        ],
        None,
        "mpi_job/j",
        "nvidia_device_plugin/n",
        "nvidia.com/gpu on kubernetes_cluster/k",
    ),
    (
        "NVIDIA's plug-in and the toolkit",
        [MACHINES, KUBEADM, TOOLKIT % "b", "nvidia_device_plugin: {n: {cluster: r}}"],
        None,
        "nvidia_device_plugin/n",
        "nvidia_container_toolkit/t",
        "GPUs in containers on linux_host/b",
    ),
    (
        "jobs and an operator that they don't name",
        ["mpi_operator: {o: {cluster: k}}", MPI % "k"],
        None,
        "mpi_job/j",
        "mpi_operator/o",
        "an MPI operator on kubernetes_cluster/k",
    ),
    (
        "jobs and images",
        [IMAGE % "tf:latest", MPI % "k"],
        None,
        "mpi_job/j",
        "container_image/i",
        "image tf:latest",
    ),
    (
        "clusters and runtimes that start again",
        [MACHINES, KUBEADM, TOOLKIT % "b"],
        None,
        "kubeadm_cluster/r",
        "nvidia_container_toolkit/t",
        "GPUs in containers on linux_host/b",
    ),
    (
        "the plug-in and its token",
        [TOKEN, PLUGIN % "k", "token_secret: {s: {cluster: k, token: t, namespaces: [kube-system]}}"],
        None,
        "bitfusion_device_plugin/p",
        "token_secret/s",
        "a Bitfusion token of form three in kube-system on kubernetes_cluster/k",
    ),
    (
        "manifests and namespaces",
        [
            "manifests: {m: {cluster: k, files: [pod.yaml]}}",
            "namespace: {n: {cluster: k, namespace: default}}",
        ],
        None,
        "manifests/m",
        "namespace/n",
        "namespace default on kubernetes_cluster/k",
    ),
    (
        "the GPU operator and namespaces",
        [GPU_OPERATOR, "namespace: {n: {cluster: k, namespace: gpus}}"],
        None,
        "gpu_operator/g",
        "namespace/n",
        "namespace gpus on kubernetes_cluster/k",
    ),
    (
        "pods and the GPU operator",
        [GPU_OPERATOR, WORK % ("k", "")],
        NVIDIA,
        POD,
        "gpu_operator/g",
        "nvidia.com/gpu on kubernetes_cluster/k",
    ),
    (
        "graphics and the drivers of hosts",
        [HOST_IMAGE, "host_graphics: {g: {hosts: [h]}}"],
        None,
        "host_graphics/g",
        "host_image/i",
        "drivers of the hosts",
    ),
    (
        "classes with vGPUs and their hosts",
        [
            HOST_IMAGE,
            "supervisor_namespace: {s: {cluster: compute, vm_classes: [c]}}",
            "vm_class: {c: {cpus: 4, memory: 16GiB, memory_reservation: 100, vgpus: [nvidia_h100-40c]}}",
        ],
        None,
        "vm_class/c",
        "host_image/i",
        "settled hosts on compute",
    ),
    (
        "operators and namespaces",
        ["mpi_operator: {o: {cluster: k}}", "namespace: {n: {cluster: k, namespace: mpi-operator}}"],
        None,
        "mpi_operator/o",
        "namespace/n",
        "namespace mpi-operator on kubernetes_cluster/k",
    ),
    (
        "tokens and namespaces",
        [
            TOKEN,
            "token_secret: {s: {cluster: k, token: t, namespaces: [x]}}",
            "namespace: {n: {cluster: k, namespace: x}}",
        ],
        None,
        "token_secret/s",
        "namespace/n",
        "namespace x on kubernetes_cluster/k",
    ),
    (
        "client images and what they are built on",
        [CLIENT, IMAGE % "'r/base:1'"],
        None,
        "client_image/c",
        "container_image/i",
        "image r/base:1",
    ),
    (
        "the plug-in and its namespace",
        [PLUGIN % "k", "namespace: {n: {cluster: k, namespace: bwki}}"],
        None,
        "bitfusion_device_plugin/p",
        "namespace/n",
        "namespace bwki on kubernetes_cluster/k",
    ),
    (
        "the plug-in and its images",
        [PLUGIN % "k, version: '0.4'", IMAGE % "bitfusiondeviceplugin/bitfusion-webhook:0.4"],
        None,
        "bitfusion_device_plugin/p",
        "container_image/i",
        "image bitfusiondeviceplugin/bitfusion-webhook:0.4",
    ),
    (
        "the plug-in and images that no registry has",
        [
            PLUGIN % "k, version: '0.4'",
            MACHINES,
            IMAGE % "bitfusiondeviceplugin/bitfusion-webhook:0.4",
            "loaded_image: {l: {hosts: [a], built: i}}",
        ],
        None,
        "bitfusion_device_plugin/p",
        "loaded_image/l",
        "image bitfusiondeviceplugin/bitfusion-webhook:0.4",
    ),
    (
        "pods and images that no registry has",
        [
            MACHINES,
            "loaded_image: {l: {hosts: [a], archive: a.tar, image: docker.io/library/busybox:1}}",
            WORK % ("k", ""),
        ],
        None,
        POD,
        "loaded_image/l",
        "image busybox:1",
    ),
    (
        "Secrets and namespaces",
        [CRED % "k", "namespace: {n: {cluster: k, namespace: default}}"],
        None,
        "registry_credential/cred",
        "namespace/n",
        "namespace default on kubernetes_cluster/k",
    ),
    (
        "tokens and servers",
        [TOKEN, SERVER % ""],
        None,
        "bitfusion_token/t",
        "bitfusion_server/bf",
        "Bitfusion servers",
    ),
    (
        "clients and servers",
        [MACHINES, SERVER % "", "bitfusion_client: {c: {hosts: [a], package: c.deb}}"],
        None,
        "bitfusion_client/c",
        "bitfusion_server/bf",
        "Bitfusion servers",
    ),
    (
        "ways and servers",
        [SERVER % "", "network_path: {n: {cluster: k, addresses: [10.1.0.5]}}"],
        None,
        "network_path/n",
        "bitfusion_server/bf",
        "a Bitfusion server on 10.1.0.5",
    ),
    (
        "servers and libraries",
        [
            SERVER % ", library: {name: appliances, datastore: d}",
            "content_library: {appliances: {datastore: d}}",
        ],
        None,
        "bitfusion_server/bf",
        "content_library/appliances",
        "content library appliances",
    ),
    (
        "servers with vGPUs",
        [SERVER % ", attach: vgpu, vgpu_profile: grid_v100d-8q", "host_graphics: {g: {hosts: [h]}}"],
        None,
        "bitfusion_server/bf",
        "host_graphics/g",
        "graphics of type sharedDirect on h",
    ),
    (
        "hosts and what is set on them",
        ["gpu_host: {h: {}}", "host_option: {o: {hosts: [h], key: Net.X, value: '1'}}"],
        None,
        "gpu_host/h",
        "host_option/o",
        "settings of the host on h",
    ),
    (
        "hosts and their switch",
        ["gpu_host: {h: {}}", "distributed_switch: {d: {hosts: {h: [vmnic2]}}}"],
        None,
        "gpu_host/h",
        "distributed_switch/d",
        "settings of the host on h",
    ),
    (
        "hosts and their adapters",
        [
            "gpu_host: {h: {}}",
            "port_group: {n: {switch: d}}",
            "vmkernel_adapter: {v: {port_group: n, hosts: {h: dhcp}}}",
        ],
        None,
        "gpu_host/h",
        "vmkernel_adapter/v",
        "settings of the host on h",
    ),
    (
        "machines and hosts that restart",
        ["gpu_host: {h: {}}", MACHINE % ", host: h"],
        None,
        "virtual_machine/m",
        "gpu_host/h",
        "a settled host on h",
    ),
    (
        "machines anywhere in a cluster",
        ["gpu_host: {h: {cluster: compute}}", MACHINE % ""],
        None,
        "virtual_machine/m",
        "gpu_host/h",
        "settled hosts on compute",
    ),
    (
        "machines with vGPUs",
        ["host_graphics: {g: {hosts: [h]}}", MACHINE % ", host: h, vgpus: [grid_t4-16c]"],
        None,
        "virtual_machine/m",
        "host_graphics/g",
        "graphics of type sharedDirect on h",
    ),
    (
        "machines with PVRDMA",
        [
            "host_firewall_rule: {f: {hosts: [h], ruleset: pvrdma}}",
            MACHINE % ", adapters: [{network: n, type: pvrdma}]",
        ],
        None,
        "virtual_machine/m",
        "host_firewall_rule/f",
        "settings for PVRDMA",
    ),
    (
        "machines and the machine they are cloned from",
        [
            MACHINE % "",
            "virtual_machine: {n: {template: m, cluster: compute, datastore: d, cpus: 4, memory: 16GiB}}",
        ],
        None,
        "virtual_machine/n",
        "virtual_machine/m",
        "machine m",
    ),
    (
        "machines from inside, and what takes them off",
        [
            MACHINE % "",
            "bitfusion_vm: {v: {vm: m, settings: {a.b: c}}}",
            f"linux_host: {{x: {INSIDE % (9, ', vm: m')}}}",
        ],
        None,
        "linux_host/x",
        "bitfusion_vm/v",
        "options of the machine on virtual_machine/m",
    ),
    (
        "Tanzu and VM classes",
        [SPACE, TKC, "vm_class: {large: {cpus: 4, memory: 16GiB}}"],
        None,
        "tanzu_cluster/c",
        "vm_class/large",
        "VM class large",
    ),
    (
        "VKS and VM classes",
        [SPACE, VKS, "vm_class: {large: {cpus: 4, memory: 16GiB}}"],
        None,
        "vks_cluster/v",
        "vm_class/large",
        "VM class large",
    ),
    (
        "machines of the VM Service and VM classes",
        [SPACE, SERVICE_VM, "vm_class: {large: {cpus: 4, memory: 16GiB}}"],
        None,
        "service_vm/d",
        "vm_class/large",
        "VM class large",
    ),
    (
        "Tanzu and storage",
        [SPACE, TKC, "storage_policy: {K8s Gold: {tags: {tier: [gold]}}}"],
        None,
        "tanzu_cluster/c",
        "storage_policy/K8s Gold",
        "storage class k8s-gold",
    ),
    (
        "Tanzu and hosts that restart",
        [SPACE, TKC, "gpu_host: {h: {cluster: compute}}"],
        None,
        "tanzu_cluster/c",
        "gpu_host/h",
        "settled hosts on compute",
    ),
    (
        "Tanzu with vGPUs",
        [
            SPACE,
            TKC,
            "vm_class: {large: {cpus: 4, memory: 16GiB, memory_reservation: 100, vgpus: [grid_v100d-16c]}}",
            "host_graphics: {g: {hosts: [h]}}",
        ],
        None,
        "tanzu_cluster/c",
        "host_graphics/g",
        "graphics of type sharedDirect",
    ),
    (
        "supervisors and hosts that restart",
        ["supervisor: {compute: {}}", "gpu_host: {h: {cluster: compute}}"],
        None,
        "supervisor/compute",
        "gpu_host/h",
        "settled hosts on compute",
    ),
    (
        "policies and tags of others",
        [
            (
                "storage_policy: {a: {tag: {category: tier, name: gold, datastores: [d]}}, b: {tags: {tier: "
                "[gold]}}}"
            )
        ],
        None,
        "storage_policy/b",
        "storage_policy/a",
        "tag tier/gold",
    ),
]


@pytest.mark.parametrize(
    ("texts", "manifest", "key", "other", "why"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND]
)
def test_what_the_site_provides_comes_first(tmp_path, texts, manifest, key, other, why):
    assert order(tmp_path, *texts, manifest=manifest)[key].get(other) == why


@pytest.mark.parametrize(
    ("texts", "manifest", "key", "other"),
    [
        ([PLUGIN % "l", WORK % ("k", "")], ASKS, POD, "bitfusion_device_plugin/p"),
        ([PLUGIN % "k", WORK % ("k", "")], NVIDIA, POD, "bitfusion_device_plugin/p"),
        ([CRED % "l", WORK % ("k", "")], pod(of=PULL), POD, "registry_credential/cred"),
        ([IMAGE % "busybox:2", WORK % ("k", "")], None, POD, "container_image/i"),
        (
            [MACHINES, KUBEADM, FLEX.replace("[b]", "[c]"), WORK % ("r", ", gpus: 1, by: flexdirect")],
            pod(args=["a"]),
            POD,
            "flexdirect_host/f",
        ),
        ([MACHINES, KUBEADM, LICENSE % "c", MPI % "r"], None, "mpi_job/j", "vgpu_license/v"),
        ([SPACE, TKC, MACHINES, LICENSE % "c", MPI % "c"], None, "mpi_job/j", "vgpu_license/v"),
        (["gpu_host: {h: {cluster: other}}", MACHINE % ""], None, "virtual_machine/m", "gpu_host/h"),
        (
            ["host_graphics: {g: {hosts: [h], type: shared}}", MACHINE % ", vgpus: [grid_t4-16c]"],
            None,
            "virtual_machine/m",
            "host_graphics/g",
        ),
        (
            [
                "host_firewall_rule: {f: {hosts: [h], ruleset: sshServer}}",
                MACHINE % ", adapters: [{network: n, type: pvrdma}]",
            ],
            None,
            "virtual_machine/m",
            "host_firewall_rule/f",
        ),
    ],
)
def test_what_is_elsewhere_or_something_else_does_not(tmp_path, texts, manifest, key, other):
    found = order(tmp_path, *texts, manifest=manifest)
    assert other in found and other not in found[key]


def test_a_supervisor_namespace_is_the_namespace_of_its_pods(tmp_path):
    cred = (
        "registry_credential: {cred: {cluster: s, namespaces: [anything], server: r, username: u, password: "
        "{env: P}}}"
    )
    found = order(tmp_path, SPACE, cred, WORK % ("s", ""), manifest=pod(of=PULL))
    assert found[POD]["registry_credential/cred"] == "Secret s/cred on supervisor_namespace/s"


def test_no_site_can_come_to_wait_for_itself_by_what_kinds_say():
    """Kinds refer to each other, and require of each other, in one direction: so do their resources, but of
    two that are of one kind.
    """
    before = {name: {*kinds_named(spec(name))} & {*names()} - {name} for name in names()}
    for *_, key, other, _ in FOUND:
        one, two = Key.parse(key).kind, Key.parse(other).kind
        before[one] |= {two} - {one}
    assert len(tuple(TopologicalSorter(before).static_order())) == len(names())


@pytest.mark.parametrize(("says", "side"), [("requires", 3), ("provides", 4)])
def test_the_table_above_holds_every_kind_that_says_anything(says, side):
    saying = {name for name in names() if getattr(spec(name), says) is not getattr(Ordered, says)}
    assert saying == {Key.parse(row[side]).kind for row in FOUND}

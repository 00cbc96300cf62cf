"""What resources of a site can't be together, each right by itself: reported by `validate`, at the place of the
one and with that of the other.
"""

from __future__ import annotations

import pytest

from bfinfra.model.errors import SiteError
from bfinfra.spec.load import load

SERVER = """
  {name}:
    ova: {{url: "https://downloads.example.com/server.ova"}}
    host: esx1
    gpus: 1
    networks: {{{networks}}}
"""
LINUX = "linux_host: {{{}}}\n"
MACHINE = "{name}: {{address: {address}, password: {{env: PW}}, trust: {{known_hosts: cni.yaml}}}}"
SUPERVISOR = """
supervisor:
  compute:
    enable:
      management: {network: Management, addresses: {first: 10.0.0.210, count: 5}, gateway: 10.0.0.1/24}
      storage: {control_plane: p, ephemeral: p, images: p}
      services: 10.96.0.0/23
      vds:
        port_group: Workload
        addresses: {first: 10.6.0.10, count: 40}
        gateway: 10.6.0.1/24
        services: {first: 10.7.0.10, count: 40}
        haproxy: {servers: ["10.7.0.2:5556"], username: admin, password: {env: PW}, authority: /etc/hosts}
"""
KUBEADM = """
kubeadm_cluster:
  k8s: {{control_plane: one, workers: [two], version: v1.20.15, cni: cni.yaml{more}}}
"""
VMK = "vmkernel_adapter:\n  roce: {port_group: RoCE, hosts: {esx1: 192.168.0.24/24, esx2: %s}}\n"
SWITCH = (
    "distributed_switch: {roce: {mtu: 1500, hosts: {esx1: [vmnic2]}}}\nport_group: {RoCE: {switch: roce}}\n"
)


def read(tmp_path, *parts):
    """The problems as `line:column what; why`, or the site's warnings."""
    path = tmp_path / "site.yaml"
    path.write_text("site: s\nvcenter: {server: v}\n" + "".join(parts))
    (tmp_path / "cni.yaml").write_text("a: b\n")
    try:
        site = load([path], env={"PW": "x"})
    except SiteError as error:
        return [str(problem).replace(f"{path}:", "") for problem in error.problems]
    return ["warning: " + str(each.problem).replace(f"{path}:", "") for each in site.warnings]


def servers(**networks):
    return "gpu_host: {esx1: {}}\nbitfusion_server:" + "".join(
        SERVER.format(name=name, networks=text) for name, text in networks.items()
    )


def machines(**addresses):
    return LINUX.format(
        ", ".join(MACHINE.format(name=name, address=address) for name, address in addresses.items())
    )


def test_two_servers_with_one_address_are_reported_at_both_places(tmp_path):
    [message] = read(
        tmp_path,
        servers(
            a="N: {network: VM Network, address: 10.0.0.5/24}",
            b="N: {network: VM Network, address: 10.0.0.5/24}",
        ),
    )
    assert message == (
        "15:50: bitfusion_server/b: 10.0.0.5 is bitfusion_server/a's already; each needs its own; see "
        "bitfusion_server/a at 9:50; change one of the two"
    )


def test_two_adapters_with_one_mac_are_reported_at_both_places(tmp_path):
    same = "mac: 00-50-56-00-00-0A"
    [message] = read(
        tmp_path,
        servers(
            a=f"N: {{network: VM Network, {same}}}",
            b="N: {network: VM Network, mac: '00:50:56:00:00:0b'}, M: {network: VM Network, mac: 00:50:56:00:00:0a}",
        ),
    )
    assert "bitfusion_server/b: the MAC address 00:50:56:00:00:0a is bitfusion_server/a's already" in message


def test_all_conflicts_are_reported_at_once(tmp_path):
    one, other = (
        "N: {network: VM Network, address: 10.0.0.5/24}",
        "N: {network: VM Network, address: 10.0.0.6/24}",
    )
    assert len(read(tmp_path, servers(a=one, b=one, c=other, d=other))) == 2


def test_an_address_belongs_to_one_of_server_machine_adapter_and_supervisor(tmp_path):
    message = read(
        tmp_path,
        servers(a="N: {network: VM Network, address: 10.0.0.212/24}"),
        machines(one="10.6.0.20"),
        SUPERVISOR,
    )
    assert [line.split(";")[0].partition(": ")[2] for line in message] == [
        "supervisor/compute: 10.0.0.210 with the 4 after it meets 10.0.0.212 of bitfusion_server/a",
        "supervisor/compute: 10.6.0.10 with the 39 after it meets 10.6.0.20 of linux_host/one",
    ]


def test_a_machine_may_be_named_twice_and_two_machines_have_two_addresses(tmp_path):
    assert read(tmp_path, machines(one="10.0.0.9", again="10.0.0.9")) == []
    [message] = read(
        tmp_path, servers(a="N: {network: VM Network, address: 10.0.0.9/24}"), machines(one="10.0.0.9")
    )
    assert "linux_host/one: 10.0.0.9 is bitfusion_server/a's already" in message


def test_adapters_on_networks_that_never_meet_may_have_one_address_which_is_better_known(tmp_path):
    apart = "N: {{network: VM Network, address: 10.0.0.{}/24}}, R: {{network: {}, address: 192.168.0.5/24}}"
    [message] = read(tmp_path, servers(a=apart.format(5, "RoCE A"), b=apart.format(6, "RoCE B")))
    assert message.startswith("warning: ")
    assert "the networks RoCE A and RoCE B must never be connected" in message
    [message] = read(tmp_path, servers(a=apart.format(5, "RoCE A"), b=apart.format(6, "RoCE A")))
    assert not message.startswith("warning")


@pytest.mark.parametrize(
    ("address", "gateway", "message"),
    [
        (
            "10.0.0.5/24",
            "10.0.1.1",
            (
                "networks.N.gateway: 10.0.1.1 is outside of the network of 10.0.0.5/24, and can't be "
                "reached from there"
            ),
        ),
        ("10.0.0.5/24", "10.0.0.5", "networks.N.gateway: 10.0.0.5 is one of the addresses that are assigned"),
        (
            "10.0.0.0/24",
            "10.0.0.1",
            "networks.N.address: 10.0.0.0/24 is no machine's address: it means the network itself",
        ),
        (
            "10.0.0.255/24",
            "10.0.0.1",
            "networks.N.address: 10.0.0.255/24 is no machine's address: it means all machines in the network",
        ),
        (
            "fd00::5/64",
            "fd01::1",
            (
                "networks.N.gateway: fd01::1 is outside of the network of fd00::5/64, and can't be reached "
                "from there"
            ),
        ),
    ],
)
def test_a_server_reaches_its_gateway(tmp_path, address, gateway, message):
    [found] = read(
        tmp_path, servers(a=f'N: {{network: VM Network, address: "{address}", gateway: "{gateway}"}}')
    )
    assert message in found


@pytest.mark.parametrize(
    ("address", "gateway"),
    [("10.0.0.4/31", "10.0.0.5"), ("10.0.0.5/24", "10.0.0.1"), ("fd00::5/64", "fd00::1")],
)
def test_what_can_be_reached_is_taken(tmp_path, address, gateway):
    assert (
        read(tmp_path, servers(a=f'N: {{network: VM Network, address: "{address}", gateway: "{gateway}"}}'))
        == []
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "gateway: 10.0.0.1/24",
            "gateway: 10.0.9.1/24",
            "enable.management.gateway: 10.0.9.1 is outside of the network of 10.0.0.210/24",
        ),
        (
            "gateway: 10.0.0.1/24",
            "gateway: 10.0.0.212/24",
            "enable.management.gateway: 10.0.0.212 is one of the addresses that are assigned",
        ),
        (
            "count: 40}\n        gateway",
            "count: 300}\n        gateway",
            "enable.vds.gateway: 10.6.0.1 is outside of the network of 10.6.1.53/24",
        ),
        (
            "first: 10.7.0.10",
            "first: 10.6.0.40",
            "10.6.0.40 with the 39 after it meets 10.6.0.10 with the 39 after it of supervisor/compute",
        ),
        (
            "services: 10.96.0.0/23",
            "services: 10.0.0.0/16",
            "10.0.0.0/16 covers 10.0.0.210 with the 4 after it of supervisor/compute",
        ),
    ],
)
def test_a_supervisors_addresses_are_its_own(tmp_path, old, new, message):
    assert read(tmp_path, SUPERVISOR) == []
    assert any(message in line for line in read(tmp_path, SUPERVISOR.replace(old, new)))


def test_a_vmkernel_address_is_on_one_host(tmp_path):
    [message] = read(tmp_path, SWITCH, VMK % "192.168.0.24/24")
    assert "vmkernel_adapter/roce: 192.168.0.24 is vmkernel_adapter/roce's already" in message
    assert read(tmp_path, SWITCH, VMK % "192.168.0.25/24") == []


def test_frames_pass_the_switch(tmp_path):
    [message] = read(tmp_path, SWITCH, (VMK % "dhcp").replace("roce: {port", "roce: {mtu: 9000, port"))
    assert (
        "vmkernel_adapter/roce: frames of 9000 bytes don't pass a switch of 1500; see "
        "distributed_switch/roce at 3:34"
    ) in message


def test_a_nic_is_on_one_switch(tmp_path):
    [message] = read(tmp_path, SWITCH.replace("[vmnic2]}}}", "[vmnic2]}}, other: {hosts: {esx1: [vmnic2]}}}"))
    assert "distributed_switch/other: vmnic2 of esx1 is distributed_switch/roce's already" in message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", []),
        (", pod_cidr: 10.0.0.0/16", ["pod_cidr"]),
        (", service_cidr: 192.168.0.0/16", ["service_cidr"]),
        (", pod_cidr: 192.168.0.128/25", ["warning"]),
    ],
)
def test_a_clusters_own_networks_hold_no_machine(tmp_path, more, message):
    found = read(
        tmp_path, machines(one="10.0.0.1", two="10.0.0.2"), SWITCH, VMK % "dhcp", KUBEADM.format(more=more)
    )
    if "pod_cidr: 10" in more:
        assert [line for line in found if "10.0.0.0/16 covers 10.0.0.1 of linux_host/one; " in line]
    elif "service_cidr" in more:
        assert [
            line for line in found if "192.168.0.0/16 covers 192.168.0.24 of vmkernel_adapter/roce" in line
        ]
    else:
        assert [line.startswith("warning") for line in found] == [True] * len(message)


def test_a_machine_is_a_node_of_one_cluster_under_one_name(tmp_path):
    hosts = machines(one="10.0.0.1", two="10.0.0.1")
    [message] = read(tmp_path, hosts, KUBEADM.format(more=""))
    assert "kubeadm_cluster/k8s: two and one are the same machine" in message
    twice = KUBEADM.format(more="") + "  more: {control_plane: two, version: v1.20.15, cni: cni.yaml}\n"
    [message] = read(tmp_path, machines(one="10.0.0.1", two="10.0.0.2"), twice)
    assert "kubeadm_cluster/more: the node two is kubeadm_cluster/k8s's already" in message


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: train}\nspec: {containers: [{name: a, image: b}]}\n"
CLUSTER = "kubernetes_cluster: {k: {kubeconfig: {file: k}}}\n"


def test_an_object_of_a_cluster_belongs_to_one(tmp_path):
    (tmp_path / "pod.yaml").write_text(POD)
    here = (
        CLUSTER + "workload: {a: {cluster: k, manifest: pod.yaml}, b: {cluster: k, manifest: pod.yaml%s}}\n"
    )
    found = read(tmp_path, here % "")
    assert [line for line in found if "workload/b: Pod/train in default is workload/a's already" in line]
    assert not [line for line in read(tmp_path, here % ", namespace: other") if "already" in line]
    secrets = (
        "registry_credential: {a: {cluster: k, namespaces: [default], server: r, username: u, password: "
        "{env: PW}%s}, b: {cluster: k, namespaces: [x, default], server: q, username: u, password: {env: "
        "PW}%s}}\n"
    )
    assert [
        line
        for line in read(tmp_path, CLUSTER, secrets % (", secret: s", ", secret: s"))
        if "registry_credential/b: Secret/s in default is registry_credential/a's already" in line
    ]
    assert not [line for line in read(tmp_path, CLUSTER, secrets % ("", "")) if "already" in line]


def test_two_vms_of_a_folder_have_two_names(tmp_path):
    vm = "virtual_machine: {a: {template: t, cluster: c, datastore: d, cpus: 1, memory: 4GiB%s}}\n"
    message = read(tmp_path, servers(a="N: {network: VM Network}"), vm % "")
    assert [line for line in message if "virtual_machine/a: the VM a is bitfusion_server/a's already" in line]
    assert not read(tmp_path, servers(a="N: {network: VM Network}"), vm % ", folder: gpu")


def test_a_setting_of_a_host_has_one_value(tmp_path):
    [message] = read(
        tmp_path,
        (
            "host_option: {a: {hosts: [x, y], key: Net.PVRDMAVmknic, value: vmk3}, b: {hosts: [y], key: "
            "Net.PVRDMAVmknic, value: vmk4}}\n"
        ),
    )
    assert "host_option/b: Net.PVRDMAVmknic of y is host_option/a's already" in message


VMS = "virtual_machine: {%s}\n"
NODE = "n{0}: {{template: t, cluster: c, datastore: d, cpus: 1, memory: 4GiB, vgpus: [grid_t4-16c]}}"
HOSTS = "linux_host: {cp: {address: 10.0.0.1, password: {env: PW}, trust: {known_hosts: cni.yaml}}, %s}\n"
INSIDE = "n{0}: {{vm: n{0}, address: 10.0.0.1{0}, password: {{env: PW}}, trust: {{known_hosts: cni.yaml}}}}"
MPI = "mpi_job: {train: {cluster: k8s, image: i, command: [c], transport: tcp, workers: %d, gpus: %d}}\n"


@pytest.mark.parametrize(
    ("workers", "gpus", "message"),
    [
        (
            5,
            1,
            (
                "mpi_job/train: 5 workers with 1 GPU each find space for 4; kubeadm_cluster/k8s has 4 worker "
                "nodes with 4 GPUs; see kubeadm_cluster/k8s at 5:44"
            ),
        ),
        (2, 2, "mpi_job/train: 2 workers with 2 GPUs each find space for 0"),
        (4, 1, ""),
        (9, 0, ""),
    ],
)
def test_workers_of_an_mpi_job_find_nodes_with_gpus(tmp_path, workers, gpus, message):
    names = "1234"
    cluster = (
        "kubeadm_cluster: {k8s: {control_plane: cp, workers: [n1, n2, n3, n4], version: v1.20.15, cni: "
        "cni.yaml}}\n"
    )
    found = read(
        tmp_path,
        VMS % ", ".join(map(NODE.format, names)),
        HOSTS % ", ".join(map(INSIDE.format, names)),
        cluster,
        MPI % (workers, gpus),
    )
    assert len(found) == bool(message)
    assert message in "".join(found)


@pytest.mark.parametrize(
    ("plugin", "fits"),
    [("time_slicing: 2", True), ("mig_strategy: single", True), ("control_plane: true", False)],
)
def test_gpus_that_are_shared_have_room_for_more_workers(tmp_path, plugin, fits):
    cluster = "kubeadm_cluster: {k8s: {control_plane: cp, workers: [n1], version: v1.20.15, cni: cni.yaml}}\n"
    found = read(
        tmp_path,
        VMS % NODE.format(1),
        HOSTS % INSIDE.format(1),
        cluster,
        MPI % (2, 1),
        f"nvidia_device_plugin: {{gpus: {{cluster: k8s, {plugin}}}}}\n",
    )
    assert (not found) == fits, found


@pytest.mark.parametrize(
    ("plugin", "toolkit", "message"),
    [
        (
            "",
            "default: false",
            (
                "nvidia_device_plugin/gpus: its pods see no GPU on n1; NVIDIA's container runtime is not "
                "the default one there; see nvidia_container_toolkit/t"
            ),
        ),
        (", runtime_class: nvidia", "default: false", ""),
        ("", "default: true", ""),
    ],
)
def test_a_device_plug_in_needs_nvidias_runtime(tmp_path, plugin, toolkit, message):
    (tmp_path / "t.deb").write_text("")
    cluster = "kubeadm_cluster: {k8s: {control_plane: cp, workers: [n1], version: v1.20.15, cni: cni.yaml}}\n"
    tools = f"nvidia_container_toolkit: {{t: {{hosts: [n1], packages: [t.deb], {toolkit}}}}}\n"
    found = read(
        tmp_path,
        VMS % NODE.format(1),
        HOSTS % INSIDE.format(1),
        cluster,
        tools,
        f"nvidia_device_plugin: {{gpus: {{cluster: k8s{plugin}}}}}\n",
    )
    assert len(found) == bool(message), found
    assert message in "".join(found)


def test_a_workload_asks_for_no_more_gpus_than_its_token_leads_to(tmp_path):
    (tmp_path / "pod.yaml").write_text(POD)
    two = (
        servers(a="N: {network: VM Network}", b="N: {network: VM Network}")
        .replace("gpus: 1\n    networks", "gpus: 2\n    networks")
        .replace("  b:\n", "  b:\n    first: a\n")
    )
    rest = (
        "bitfusion_token: {t: {source: {tar: t.tar}, servers: [a]}}\ntoken_secret: {s: {cluster: k, token: "
        "t, namespaces: [default]}}\n"
    )
    train = "workload: {train: {cluster: k, manifest: pod.yaml, token_secret: s, gpus: %d}}\n"
    assert not [line for line in read(tmp_path, CLUSTER, two, rest, train % 4) if "GPUs" in line]
    found = read(tmp_path, CLUSTER, two, rest, train % 9)
    assert [
        line
        for line in found
        if "workload/train: 9 GPUs are more than its token leads to: 4; see bitfusion_server/a at" in line
    ]

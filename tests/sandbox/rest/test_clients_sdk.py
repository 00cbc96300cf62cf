"""What bfinfra and the sandbox say to each other over REST, judged by the official SDK's own table of
operations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from judge import misfits, vm_template_client
from kinds.lifecycle import EXAMPLES
from operations import Exchange, judged
from pyVmomi import vim
from recorder import Recorder, run
from rights.given import administrator
from sandbox.asking import Rest

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

FULL = {
    "cluster": "compute",
    "description": "for tests",
    "limits": {"cpu": "16GHz", "memory": "64GiB", "storage": "1TiB"},
    "storage": {"gold": "100GiB", "silver": None},
    "vm_classes": ["best-effort-small"],
    "content_libraries": ["tkr"],
    "access": [{"group": "devs@small.test", "role": "edit"}, {"user": "dev@small.test", "role": "view"}],
}


def test_every_message_in_the_life_of_a_namespace_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    site = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text()) | {
        "supervisor_namespace": {"team-a": FULL}
    }
    run(site, tmp_path, sandbox, recorder)
    site["supervisor_namespace"]["team-a"] = {
        **FULL,
        "limits": {"memory": "32GiB"},
        "storage": {"gold": "50GiB"},
        "access": [],
        "description": "changed",
    }
    run(site, tmp_path, sandbox, recorder)
    run(site, tmp_path, sandbox, recorder, destroy=True)
    instances = "/vcenter/namespaces/instances"
    assert recorder.seen() >= {
        "POST /session",
        "DELETE /session",
        f"POST {instances}",
        f"GET {instances}",
        f"GET {instances}/{{namespace}}",
        f"PATCH {instances}/{{namespace}}",
        f"DELETE {instances}/{{namespace}}",
        "GET /vcenter/storage/policies",
        "GET /vcenter/namespace-management/clusters",
        "GET /vcenter/namespace-management/clusters/{cluster}",
        "GET /vcenter/namespace-management/virtual-machine-classes",
        "GET /content/library",
        "GET /content/library/{libraryId}",
    }


def test_every_message_when_a_server_comes_from_a_library_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    text = (
        EXAMPLES["bitfusion_server"].read_text().replace("0x10de", "'0x10de'").replace("0x1eb8", "'0x1eb8'")
    )
    site = yaml.safe_load(text)
    site["bitfusion_server"]["bf-01"]["library"] = {"name": "appliances", "datastore": "local"}
    run(site, tmp_path, sandbox, recorder)
    sessions = "/content/library/item/update-session"
    assert recorder.seen() >= {
        "POST /content/library?action=find",
        "POST /content/local-library",
        "POST /content/library/item?action=find",
        "POST /content/library/item",
        "GET /content/library/item/{libraryItemId}",
        "GET /content/library/item/{libraryItemId}/file",
        f"POST {sessions}",
        f"GET {sessions}",
        f"POST {sessions}/{{updateSessionId}}/file",
        f"POST {sessions}/{{updateSessionId}}?action=complete",
        f"GET {sessions}/{{updateSessionId}}",
        f"DELETE {sessions}/{{updateSessionId}}",
        "POST /vcenter/ovf/library-item/{ovfLibraryItemId}?action=deploy",
    }


TEMPLATES = "/vcenter/vm-template/library-items"
CARD = vim.vm.device.VirtualEthernetCard
REGISTERED = {
    "vcenter_url": "https://vc.small.test",
    "vcenter_guid": "4f2c3c0e-6a53-4a0f-9f57-9d3f0c1c2a61",
    "vcenter_thumbprint": ":".join(["AB"] * 20),
}
"""What a Bitfusion server gets to know of its vCenter; a virtual machine says so itself."""


def test_every_message_when_machines_come_from_a_library_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder, site = Recorder(), yaml.safe_load(EXAMPLES["virtual_machine"].read_text())
    machine = site["virtual_machine"]["sckubw01"]
    server = yaml.safe_load(EXAMPLES["bitfusion_server"].read_text())["bitfusion_server"]["bf-01"]
    for name, item, properties in (
        (
            "of-an-ovf",
            ovf_item(sandbox, tmp_path),
            {**server["properties"], **REGISTERED, "network.ip_cidr.1": "10.2.0.77/24"},
        ),
        ("of-a-template", template_item(sandbox), {}),
    ):
        library = {"name": "images", "item": item}
        site["virtual_machine"] = {
            name: {key: value for key, value in machine.items() if key != "template"}
            | {"library": library, "properties": properties}
        }
        run(site, tmp_path, sandbox, recorder)
        if properties:
            with administrator(sandbox) as si:
                given = {
                    ".".join(filter(None, (p.classId, p.id, p.instanceId))): p.value
                    for p in si.content.searchIndex.FindByInventoryPath(
                        f"/dc/vm/{name}"
                    ).config.vAppConfig.property
                }
            assert (given["network.ip_cidr.1"], given["customer_password"]) == ("10.2.0.77/24", "")
            run(site, tmp_path, sandbox, again := Recorder())
            assert not [seen for seen in again.seen() if "deploy" in seen]
        with administrator(sandbox) as si:
            vm = si.content.searchIndex.FindByInventoryPath(f"/dc/vm/{name}")
            keys = {o.key for o in vm.config.extraConfig if o.value}
            cards = [type(d) for d in vm.config.hardware.device if isinstance(d, CARD)]
            assert (
                vm.config.hardware.numCPU,
                vm.runtime.powerState,
                cards,
                keys & {"bfinfra.mark", "bfinfra.importing"},
            ) == (4, "poweredOn", [vim.vm.device.VirtualVmxnet3], {"bfinfra.mark"})
    run(site, tmp_path, sandbox, recorder, destroy=True)
    assert recorder.seen() >= {
        "POST /content/library?action=find",
        "POST /content/library/item?action=find",
        "GET /content/library/item/{libraryItemId}",
        f"GET {TEMPLATES}/{{item}}",
        "POST /vcenter/ovf/library-item/{ovfLibraryItemId}?action=deploy",
        "POST /vcenter/ovf/library-item/{ovfLibraryItemId}?action=filter",
    }


def ovf_item(sandbox: Running, folder: Path) -> str:
    """The appliance that a server brought into the library, which stays when the server goes."""
    site = yaml.safe_load(
        EXAMPLES["bitfusion_server"].read_text().replace("0x10de", "'0x10de'").replace("0x1eb8", "'0x1eb8'")
    )
    site["bitfusion_server"]["bf-01"]["library"] = {"name": "images", "datastore": "local"}
    run(site, folder, sandbox, Recorder())
    run(site, folder, sandbox, Recorder(), destroy=True)
    rest = Rest(sandbox)
    (item,) = rest.call("POST", "/api/content/library/item?action=find", {"type": "ovf"}).data
    return str(rest.get(f"/api/content/library/item/{item}")["name"])


def template_item(sandbox: Running) -> str:
    """One made of a template; the SDK knows these two operations in the old form of /rest only, so their
    bodies are judged alone.
    """
    rest, types = Rest(sandbox), vm_template_client.LibraryItems
    (library,) = rest.call("POST", "/api/content/library?action=find", {"name": "images"}).data
    with administrator(sandbox) as si:
        source = si.content.searchIndex.FindByInventoryPath("/dc/vm/centos-7.6")._moId
    body = {
        "source_vm": source,
        "name": "centos-item",
        "library": library,
        "placement": {"cluster": rest.get("/api/vcenter/cluster?names=farm")[0]["cluster"]},
    }
    made = rest.call("POST", f"/api{TEMPLATES}", body)
    deploy = {
        "name": "by-the-api",
        "placement": body["placement"],
        "hardware_customization": {"cpu_update": {"num_cpus": 8}},
    }
    deployed = rest.call("POST", f"/api{TEMPLATES}/{made.data}?action=deploy", deploy)
    with administrator(sandbox) as si:
        assert si.content.searchIndex.FindByInventoryPath("/dc/vm/by-the-api").config.hardware.numCPU == 8
    assert (
        misfits(types.CreateSpec, body),
        misfits(types.DeploySpec, deploy),
        made.status,
        deployed.status,
    ) == ([], [], 201, 201)
    return "centos-item"


CLASS = {
    "cpus": 4,
    "memory": "16GiB",
    "memory_reservation": 100,
    "vgpus": ["grid_v100d-16c"],
    "devices": [{"vendor": "0x10de", "device": "0x1eb8", "label": "training"}],
}


def test_every_message_in_the_life_of_a_vm_class_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    site = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text()) | {
        "supervisor_namespace": {},
        "vm_class": {"gpu": CLASS},
    }
    run(site, tmp_path, sandbox, recorder)
    site["vm_class"]["gpu"] = CLASS | {"instance_storage": {"policy": "gold", "volumes": ["100GiB"]}}
    run(site, tmp_path, sandbox, recorder)
    site["vm_class"] = {"small": {"cpus": 2, "memory": "8GiB"}}
    run(site, tmp_path, sandbox, recorder)
    site["vm_class"]["small"] = {"cpus": 2, "memory": "8GiB", "cpu_reservation": 50}
    run(site, tmp_path, sandbox, recorder)
    run(site, tmp_path, sandbox, recorder, destroy=True)
    classes = "/vcenter/namespace-management/virtual-machine-classes"
    assert recorder.seen() >= {
        f"GET {classes}",
        f"POST {classes}",
        f"PATCH {classes}/{{vm_class}}",
        f"DELETE {classes}/{{vm_class}}",
    }


def test_every_message_in_the_life_of_content_libraries_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    libraries = {
        "releases": {"datastore": "shared", "subscription": {"thumbprint": ":".join(["AB"] * 20)}},
        "own": {"datastore": "local"},
    }
    site = yaml.safe_load(EXAMPLES["content_library"].read_text()) | {"content_library": libraries}
    run(site, tmp_path, sandbox, recorder)
    libraries["releases"]["subscription"] = {"url": "https://mirror.small.test/lib.json", "on_demand": False}
    libraries["own"]["description"] = "changed"
    run(site, tmp_path, sandbox, recorder)
    run(site, tmp_path, sandbox, recorder, destroy=True)
    kinds = {
        f"{verb} /content/{kind}-library{rest}"
        for kind in ("local", "subscribed")
        for verb, rest in (("POST", ""), ("PATCH", "/{libraryId}"), ("DELETE", "/{libraryId}"))
    }
    assert recorder.seen() >= {
        "GET /content/library",
        "GET /content/library/{libraryId}",
        "GET /content/library/item",
        "GET /vcenter/datastore",
        *kinds,
    }


def test_every_rest_message_in_the_life_of_a_storage_policy_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder, site, tags = (
        Recorder(),
        yaml.safe_load(EXAMPLES["storage_policy"].read_text()),
        "/cis/tagging/tag",
    )
    site["storage_policy"]["bf-k8s"]["tag"] = {
        "category": "bfinfra",
        "name": "bf-k8s",
        "datastores": ["shared", "local"],
    }
    run(site, tmp_path, sandbox, recorder)
    site["storage_policy"]["bf-k8s"]["tag"]["datastores"] = ["shared"]
    run(site, tmp_path, sandbox, recorder)
    run(site, tmp_path, sandbox, recorder, destroy=True)
    assert recorder.seen() >= {
        "GET /vcenter/storage/policies",
        "GET /cis/tagging/category",
        "GET /cis/tagging/category/{categoryId}",
        "POST /cis/tagging/category",
        "DELETE /cis/tagging/category/{categoryId}",
        f"POST {tags}",
        f"GET {tags}/{{tagId}}",
        f"PATCH {tags}/{{tagId}}",
        f"DELETE {tags}/{{tagId}}",
        f"POST {tags}?action=list-tags-for-category",
        f"POST {tags}-association?action=list-attached-objects-on-tags",
        f"POST {tags}-association/{{tagId}}?action=attach-tag-to-multiple-objects",
        f"POST {tags}-association/{{tagId}}?action=detach",
    }


SUPERVISOR = "/vcenter/namespace-management/clusters"
NSX = {
    "switch": "pods",
    "edge_cluster": "2f0d3c1a",
    "pods": ["10.244.0.0/20"],
    "ingress": ["10.6.1.0/24"],
    "egress": ["10.6.2.0/24"],
    "tier0": "t0",
}


@pytest.mark.parametrize("networking", ["haproxy", "avi", "nsx"])
def test_every_message_in_the_life_of_a_supervisor_fits(
    networking: str, sandbox: Running, tmp_path: Path
) -> None:
    recorder = Recorder()
    site = yaml.safe_load(EXAMPLES["supervisor"].read_text())
    farm = site["supervisor"]["farm"]
    enable = farm["enable"]
    if networking == "avi":
        account = enable["vds"].pop("haproxy")
        account.pop("servers")
        enable["vds"].pop("services")  # Avi has its own
        enable["vds"]["avi"] = account | {"server": "10.2.0.220:443", "cloud": "Default-Cloud"}
    elif networking == "nsx":
        enable.pop("vds")
        enable |= {"nsx": NSX, "management": {"network": "VM Network"}}
    run(site, tmp_path, sandbox, recorder)
    farm |= {
        "size": "large",
        "login_banner": "ours",
        "content_library": "tkr",
        "dns": {"workloads": ["10.2.0.3"], "search": ["small.test"]},
    }
    enable["storage"]["images"] = "silver"
    if networking == "nsx":
        enable["nsx"] = NSX | {"egress": [*NSX["egress"], "10.6.3.0/24"]}
    run(site, tmp_path, sandbox, recorder)
    kept = len([each for each in recorder.kept if each.method == "PATCH"])
    run(site, tmp_path, sandbox, recorder)
    assert len([each for each in recorder.kept if each.method == "PATCH"]) == kept, "what was changed is so"
    run(site, tmp_path, sandbox, recorder, destroy=True)
    assert recorder.seen() >= {
        f"GET {SUPERVISOR}/{{cluster}}",
        f"POST {SUPERVISOR}/{{cluster}}?action=enable",
        f"PATCH {SUPERVISOR}/{{cluster}}",
        f"POST {SUPERVISOR}/{{cluster}}?action=disable",
        "GET /vcenter/namespaces/instances",
    }


def test_every_message_in_the_life_of_a_registry_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    site = yaml.safe_load(EXAMPLES["registry"].read_text())
    run(site, tmp_path, sandbox, recorder)
    run(site, tmp_path, sandbox, recorder, destroy=True)
    harbor = "/vcenter/content/registries/harbor"
    assert recorder.seen() >= {
        f"GET {harbor}",
        f"POST {harbor}",
        f"GET {harbor}/{{registry}}",
        f"GET {harbor}/{{registry}}/projects",
        f"DELETE {harbor}/{{registry}}",
    }


def test_every_message_in_the_life_of_an_image_fits(sandbox: Running, tmp_path: Path) -> None:
    recorder = Recorder()
    site = yaml.safe_load(EXAMPLES["host_image"].read_text())
    run(site, tmp_path, sandbox, recorder)
    site["host_image"]["gpu"]["components"] = {"NVIDIA-vGPU": "580.105.06"}
    run(site, tmp_path, sandbox, recorder)
    cluster = next(each.path.split("/")[4] for each in recorder.kept if "/esx/settings/clusters" in each.path)
    assert Rest(sandbox).call("POST", f"/api/esx/settings/clusters/{cluster}/software/drafts").status == 201
    run(site, tmp_path, sandbox, recorder, destroy=True)
    depots, image = "/esx/settings/depots/offline", "/esx/settings/clusters/{cluster}/software"
    assert recorder.seen() >= {
        f"GET {depots}",
        f"POST {depots}",
        f"DELETE {depots}/{{depot}}",
        "GET /cis/tasks/{task}",
        f"GET {image}",
        f"GET {image}/compliance",
        f"GET {image}/drafts",
        f"POST {image}/drafts",
        f"GET {image}/drafts/{{draft}}",
        f"PATCH {image}/drafts/{{draft}}/software/components",
        f"POST {image}/drafts/{{draft}}?action=commit",
        *(f"POST {image}?action={each}" for each in ("scan", "check", "apply")),
    }


def exchange(**changes: Any) -> Exchange:
    return Exchange(
        **{
            "method": "GET",
            "path": "/vcenter/cluster",
            "query": {},
            "body": None,
            "status": 200,
            "answer": [],
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"path": "/vcenter/clusters"}, "knows no such operation"),
        ({"query": {"colour": "red"}}, "query colour: unknown"),
        ({"body": {}}, "the body is {}"),
        ({"answer": [{"cluster": "c"}]}, "answer[0].name: missing"),
        ({"answer": None}, "the answer is None"),
        (
            {
                "method": "POST",
                "path": "/vcenter/namespaces/instances",
                "body": {"namespace": 7, "cluster": "c"},
                "answer": None,
            },
            "body.namespace: 7 is no str",
        ),
        (
            {
                "method": "POST",
                "path": "/vcenter/namespaces/instances",
                "body": {"namespace": "n"},
                "answer": None,
            },
            "body.cluster: missing",
        ),
    ],
)
def test_the_judge_sees_what_is_wrong(wrong: dict[str, Any], why: str) -> None:
    assert judged(exchange())[1] == []
    assert any(why in each for each in judged(exchange(**wrong))[1])

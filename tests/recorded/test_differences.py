"""Where the sandbox's answers have another shape than real ones that were recorded: a list that may only
become shorter.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, made
from lxml import etree
from pyVmomi import vim
from recorded.conftest import Held
from recorded.shapes import Tree, differences, of_json, of_xml
from recorded.sources import cassette, stored
from waiting import until

import bfinfra
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter, queries, refs
from bfinfra.sandbox import Running
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.supervisor import NamespaceSpec, Supervisor
from bfinfra.sandbox.kubernetes.tanzu_shapes import TANZU_CLUSTER, Progress

SOURCE = "the sandbox's answers, by shape"
KNOWN = Path(__file__).with_name("differences.txt")
ABSENT = Path(__file__).with_name("absent.txt")
WHOLE = (
    vim.ClusterComputeResource,
    vim.Datacenter,
    vim.Datastore,
    vim.DistributedVirtualSwitch,
    vim.dvs.DistributedVirtualPortgroup,
    vim.Folder,
    vim.HostSystem,
    vim.Network,
    vim.ResourcePool,
    vim.VirtualMachine,
)
"""The types of which every property is looked for."""
ASKED: dict[Any, tuple[str, ...]] = {
    vim.VirtualMachine: ("config", "runtime", "disabledMethod", "customValue"),
    vim.HostSystem: (
        "config.pciPassthruInfo",
        "config.sharedPassthruGpuTypes",
        "config.network",
        "config.dateTimeInfo",
        "hardware.pciDevice",
        "runtime",
    ),
    vim.DistributedVirtualSwitch: ("config", "summary"),
    vim.dvs.DistributedVirtualPortgroup: ("config",),
    vim.Datastore: ("summary",),
}
"""What bfinfra reads of each, and what stands beside it."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The objects of a real vCenter, by type."""
    folder, found = tmp_path_factory.mktemp("saved"), dict[str, list[Any]]()
    with tarfile.open(stored("vcenter-8.0.1-vmc.tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    for path in sorted(folder.glob("*/*.xml")):
        root = etree.parse(path).getroot()
        found.setdefault(root.find("{*}obj").get("type"), []).append(root)
    return found


@pytest.fixture
def filled(sandbox: Running, tmp_path: Path) -> Iterator[Any]:
    """ServiceContent of the sandbox's vCenter, with a server that runs and a switch with a port group."""
    given: dict[str, Any] = {}
    for kind in ("bitfusion_server", "port_group"):
        given |= yaml.load(
            EXAMPLES[kind].read_text(), yaml.BaseLoader
        )  # scalars stay text: 0x10de is no number
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    vcenter = VCenter(bfinfra.load(path, sandbox=sandbox).vcenter, Transport(route=sandbox.lookup))
    yield vcenter.machines._session.content()
    vcenter.close()


def values(root: Any, paths: Sequence[str]) -> Tree:
    """What an object says under these paths, those that it says."""
    properties = {each.findtext("{*}name"): each.find("{*}val") for each in root.iterfind("{*}propSet")}
    found = {}
    for path in paths:
        first, _, rest = path.partition(".")
        value = properties.get(path, properties.get(first))
        if (
            value is not None and path not in properties and rest
        ):  # within the whole property, where a list is its items side by side
            found[path] = [
                of_xml(each) for each in value.iterfind("/".join("{*}" + part for part in rest.split(".")))
            ]
        elif value is not None:
            items = any(each.startswith("ArrayOf") for each in map(str, value.attrib.values()))
            found[path] = [of_xml(each) for each in value] if items else [of_xml(value)]
    return {path: trees for path, trees in found.items() if trees}


def asked(content: Any, kind: Any, paths: Sequence[str]) -> list[Any]:
    """All objects of a type in the sandbox, as they come over the wire."""
    view = content.viewManager.CreateContainerView(content.rootFolder, [kind], True)
    question = queries.first(
        {kind: paths, vim.view.ContainerView: ["container"]}, [queries.viewed(view)], 500
    )
    answer = refs.stub(content).read(content.propertyCollector, "RetrievePropertiesEx", question)
    return [
        each
        for each in answer.iterfind("{*}returnval/{*}objects")
        if each.find("{*}obj").get("type") != "ContainerView"
    ]


def of_vcenter(content: Any, real: dict[str, list[Any]]) -> Iterator[str]:
    for kind, paths in ASKED.items():
        name = kind.__name__.rpartition(".")[2]
        ours = asked(content, kind, paths)
        there = real.get(name) or real[f"Vmware{name}"]
        yield from differences(
            [values(each, paths) for each in there], [values(each, paths) for each in ours], name
        )


def told(thing: Any) -> set[str]:
    """The properties that an object has, and their first fields: `config`, `config.network`."""
    found = set()
    for each in thing.iterfind("{*}propSet"):
        name, value = each.findtext("{*}name"), each.find("{*}val")
        found.add(name)
        listed = value is None or any("ArrayOf" in kind for kind in map(str, value.attrib.values()))
        if not listed:
            found |= {f"{name}.{etree.QName(inner).localname}" for inner in value}
    return found


def absent(content: Any, real: dict[str, list[Any]]) -> Iterator[str]:
    """The properties that all real objects of a type have, and none of the sandbox's."""
    for kind in WHOLE:
        name = kind.__name__.rpartition(".")[2]
        there = set.intersection(*map(told, real.get(name) or real[f"Vmware{name}"]))
        known = [path for path in there if "." not in path and hasattr(kind, path)]
        here = set().union(*map(told, asked(content, kind, sorted(known))))
        missing = there - here
        yield from (f"{name}.{path}" for path in missing if path.partition(".")[0] not in missing - {path})
    (service,) = real["ServiceInstance"]
    yield from (
        f"ServiceInstance.{path}"
        for path in told(service)
        if path.startswith("content.") and getattr(content, path.partition(".")[2]) is None
    )


def of_config_target(content: Any) -> Iterator[str]:
    """Of a host whose cards are passed through; the real one stands alone, without a cluster."""
    hosts = asked(content, vim.HostSystem, ["name", "parent"])
    (host,) = [
        each
        for each in hosts
        if "esx1.small.test" in [properties.text for properties in each.iterfind("{*}propSet/{*}val")]
    ]
    parent = next(
        each.findtext("{*}val")
        for each in host.iterfind("{*}propSet")
        if each.findtext("{*}name") == "parent"
    )
    (cluster,) = [
        each
        for each in asked(content, vim.ClusterComputeResource, ["environmentBrowser"])
        if each.findtext("{*}obj") == parent
    ]
    browser = vim.EnvironmentBrowser(cluster.find("{*}propSet/{*}val").text, refs.stub(content))
    answer = refs.stub(content).read(
        browser, "QueryConfigTarget", f'<host type="HostSystem">{host.findtext("{*}obj")}</host>'
    )
    recorded = etree.fromstring(stored("esxi-a100/config-target-HostSystem-ha-host.xml").read_bytes())
    yield from differences([of_xml(recorded)], [of_xml(answer.find("{*}returnval"))], "QueryConfigTarget")


def of_passthrough(content: Any, real: dict[str, list[Any]]) -> Iterator[str]:
    """Which devices a host says can, or can't, be passed through."""

    def whole(host: Any) -> tuple[bool, bool]:
        properties = {each.findtext("{*}name"): each.find("{*}val") for each in host.iterfind("{*}propSet")}
        devices = properties.get("hardware.pciDevice", properties.get("hardware"))
        infos = properties.get("config.pciPassthruInfo", properties.get("config"))
        listed = [
            each
            for each in infos.iter()
            if etree.QName(each).localname in ("pciPassthruInfo", "HostPciPassthruInfo")
            and each.find("{*}id") is not None
        ]
        there = [
            each
            for each in devices.iter()
            if etree.QName(each).localname in ("pciDevice", "HostPciDevice")
            and each.find("{*}id") is not None
        ]
        return len(listed) == len(there), any(each.findtext("{*}dependentDevice") for each in listed)

    (recorded,) = {whole(host) for host in real["HostSystem"]}
    for host in asked(content, vim.HostSystem, ["config.pciPassthruInfo", "hardware.pciDevice"])[:1]:
        for what, one, other in zip(
            ("lists every PCI device", "names a device that each depends on"),
            recorded,
            whole(host),
            strict=True,
        ):
            if one != other:
                yield f"HostSystem.config.pciPassthruInfo {what}: {other} in the sandbox"


def of_attributes(content: Any, real: dict[str, list[Any]]) -> Iterator[str]:
    """The custom attributes of hosts that are there before any of a user's."""

    def of_hosts(manager: Any) -> dict[str, Tree]:
        fields = [
            each
            for each in manager.iter("{*}CustomFieldDef")
            if each.findtext("{*}managedObjectType") == "HostSystem"
        ]
        return {each.findtext("{*}name"): of_xml(each) for each in fields}

    question = queries.first(
        {vim.CustomFieldsManager: ["field"]},
        queries.named(vim.CustomFieldsManager, [content.customFieldsManager._moId]),
        1,
    )
    answer = refs.stub(content).read(content.propertyCollector, "RetrievePropertiesEx", question)
    there, here = of_hosts(real["CustomFieldsManager"][0]), of_hosts(answer)
    yield from differences(
        [{name: [tree] for name, tree in there.items()}],
        [{name: [tree] for name, tree in here.items() if not name.startswith("bfinfra")}],
        "customAttributes",
    )


def of_tanzu_clusters() -> Iterator[str]:
    """What a cluster's status says and its definition of 2021 doesn't know: a real API server prunes it."""
    definition = yaml.safe_load(stored("crds/tanzukubernetesclusters-v1alpha1.yaml").read_text())
    version = next(
        each
        for each in definition["spec"].get("versions") or [{}]
        if each.get("name", "v1alpha1") == "v1alpha1"
    )
    known = (version.get("schema") or definition["spec"]["validation"])["openAPIV3Schema"]["properties"][
        "status"
    ]["properties"]
    properties = TANZU_CLUSTER.status({}, Progress("running", {"a": "ready"}, [{}], {}, "10.0.0.1"))
    yield from (
        f"TanzuKubernetesCluster v1alpha1.status.{name}: the sandbox alone has it"
        for name in sorted(properties.keys() - known.keys())
    )


def of_supervisor() -> Iterator[str]:
    """A namespace and its quota, as vCenter makes them on the supervisor."""
    text = gzip.decompress(stored("supervisor-2021/container_manager.yml.gz").read_bytes()).decode()
    lists = {
        each.uri.partition("?")[0].rpartition("/")[2]: each.answer
        for each in cassette("supervisor", text)
        if each.method == "GET"
    }
    mine = [
        each
        for each in json.loads(lists["namespaces"])["items"]
        if "vSphereClusterID" in (each["metadata"].get("labels") or {})
    ]
    quotas = json.loads(lists["resourcequotas"])["items"]
    outside = Outside(
        ca_pem="", login=lambda *_: None, machine_classes=dict, open=lambda *_: None, close=lambda *_: None
    )
    supervisor = Supervisor("10.0.0.1", "v1.18.2+vmware.wcp.1", Clock(0), outside)
    supervisor.start()
    try:
        supervisor.namespace_ready("production", NamespaceSpec(storage={"ben": None}))
        until(
            lambda: (
                "status"
                in (
                    supervisor.cluster.get("", "resourcequotas", "production-storagequota", "production")
                    or {}
                )
            )
        )
        ours = {
            plural: supervisor.cluster.get("", plural, name, home)
            for plural, name, home in (
                ("namespaces", "production", ""),
                ("resourcequotas", "production-storagequota", "production"),
            )
        }
    finally:
        supervisor.close()
    for plural, there in (("namespaces", mine), ("resourcequotas", quotas)):
        yield from differences(
            [of_json(listed(each)) for each in there], [of_json(listed(ours[plural]))], plural
        )


def listed(thing: Any) -> Any:
    """As a list has it, without what came and went with Kubernetes' own versions."""
    metadata = {
        name: value for name, value in thing["metadata"].items() if name not in ("managedFields", "selfLink")
    }
    return {
        **{name: value for name, value in thing.items() if name not in ("apiVersion", "kind")},
        "metadata": metadata,
    }


def agrees(found: set[str], file: Path, held: Held, source: str) -> None:
    """Whether what was found is what the file lists. `source`: says so, with the number of lines."""
    known = {line for line in file.read_text().splitlines() if line and not line.startswith("#")}
    wrong = [f"new: {line}" for line in sorted(found - known)] + [
        f"mended, take it out: {line}" for line in sorted(known - found)
    ]
    held(source.format(len(known)), wrong, max(len(found | known), 1))


def test_the_sandbox_differs_in_nothing_but_what_is_listed(
    filled: Any, real: dict[str, list[Any]], held: Held
) -> None:
    """A new line: mend the sandbox. A line that is not so any more: take it out of differences.txt."""
    found = {
        *of_vcenter(filled, real),
        *of_config_target(filled),
        *of_passthrough(filled, real),
        *of_attributes(filled, real),
        *of_tanzu_clusters(),
        *of_supervisor(),
    }
    agrees(found, KNOWN, held, f"{SOURCE} ({{}} known differences)")


def test_the_sandbox_has_every_property_of_a_real_object_but_those_that_are_listed(
    filled: Any, real: dict[str, list[Any]], held: Held
) -> None:
    """A new line: give the sandbox the property. A line that is not so any more: take it out of absent.txt."""
    found = {*absent(filled, real)}
    agrees(found, ABSENT, held, "properties of real objects ({} that the sandbox lacks)")


@pytest.mark.parametrize("file", [KNOWN, ABSENT], ids=lambda file: file.name)
def test_the_list_is_in_order_and_says_each_line_once(file: Path) -> None:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(set(lines))

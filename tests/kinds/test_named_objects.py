"""Every text of a site by its existing, as far as it is about vCenter: a field that names an object takes its name
or its path, and a name that several have is refused with their paths; or it says why it has no path.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds import untidy
from kinds.lifecycle import EXAMPLES, SPECS, apply, plan
from pydantic import BaseModel

import bfinfra.kinds as registry
from bfinfra.model.errors import BfinfraError
from bfinfra.sandbox import Running, start, stop

KINDS = registry.names("vcenter", "supervisor")
SEVERAL = {
    "virtual_machine.template": "centos-7.6",
    "virtual_machine.cluster": "farm",
    "cluster_option.clusters": "farm",
    "content_library.datastore": "local",
    "gpu_host.cluster": "farm",
    "host_image.cluster": "farm",
    "registry.cluster": "compute",
    "resource_pool.cluster": "farm",
    "storage_policy.tag.datastores": "local",
    "supervisor.enable.management.network": "VM Network",
}
"""Field → a name that several have in the untidy world, where the site names no datacenter."""
ELSEWHERE = {
    "virtual_machine.datastore": "looked up in its cluster's datacenter, which has one of a name",
    "virtual_machine.disks.datastore": "the same",
    "virtual_machine.host": "a vCenter has a host once",
    "virtual_machine.folder": "it is a path below its datacenter's folder for VMs",
    "virtual_machine.resource_pool": "tests/kinds/resource_pool has pools of one name",
    "virtual_machine.adapters.network": "as its datastore; tests/backends/vcenter/test_places.py has switches",
    "bitfusion_server.library.datastore": "looked up in its host's datacenter, which has one of a name",
    "bitfusion_server.datastore": "the same",
    "bitfusion_server.folder": "it is a path below its datacenter's folder for VMs",
    "bitfusion_server.resource_pool": "tests/kinds/resource_pool has pools of one name",
    "bitfusion_server.networks.network": "looked up among the networks of its host",
    "bitfusion_vm.vm": "tests/kinds/bitfusion_vm has VMs of one name",
    "port_group.switch": "tests/kinds/port_group has switches of one name",
    "resource_pool.parent": "tests/kinds/resource_pool has pools of one name",
    "supervisor.enable.nsx.switch": "looked up as management.network",
    "supervisor.enable.vds.port_group": "looked up as management.network",
    "supervisor_namespace.cluster": "below, with two supervisors",
}
"""Field that takes a path → why it isn't tried with a name of several here, or where it is."""
PATHLESS = {
    "a vCenter has a host once": ("*.hosts", "bitfusion_server.host"),
    "it is in no folder, and its kind's names are all of vCenter's": (
        "*.library.name",
        "*.image.library",
        "*.policy",
        "*.storage",
        "*.content_library",
        "*.content_libraries",
        "*.vm_classes",
        "*.vm_class",
        "*.zones",
        "*.zone",
        "*.reserved",
        "*.enable.storage.*",
        "*.foundation.storage",
        "storage_policy.tags",
        "storage_policy.tag.category",
        "storage_policy.tag.name",
        "host_image.components",
    ),
    "it is a resource of the site": (
        "bitfusion_server.first",
        "host_option.adapter",
        "vmkernel_adapter.port_group",
        "*.namespace",
        "vks_addon.cluster",
        "tanzu_cluster.trust.registry",
    ),
    "it is an object of Kubernetes, or in a library": (
        "*.item",
        "*.storage_class",
        "*.storage_classes",
        "*.default_storage_class",
        "*.class_namespace",
        "*.cluster_class",
        "*.worker_class",
        "vks_addon.addon",
        "vks_addon.release",
        "vm_class.device_groups",
    ),
    "it is an object of NSX or of a load balancer": (
        "*.edge_cluster",
        "*.tier0",
        "*.project",
        "*.connectivity_profile",
        "*.avi.cloud",
        "supervisor.enable.vds.name",
    ),
}
"""Why a field that names something takes no path → its fields; `*` stands for what is in front or behind."""
NOTHING = [
    "*.after",
    "*.url",
    "*.sha256",
    "*.ca_pem",
    "*.thumbprint",
    "*.description",
    "*.key",
    "*.keys",
    "*.value",
    "*.values",
    "*.version",
    "*.os",
    "*.variables",
    "*.labels",
    "*.taints",
    "*.label",
    "*.mount_path",
    "*.volumes",
    "*.pods",
    "*.services",
    "*.ingress",
    "*.egress",
    "*.private",
    "*.service_domain",
    "*.search",
    "*.first",
    "*.gateway",
    "*.address",
    "*.mac",
    "*.dns",
    "*.username",
    "*.server",
    "*.servers",
    "*.control_plane",
    "*.workloads",
    "*.ntp",
    "*.login_banner",
    "*.user",
    "*.group",
    "*.trust",
    "*.workers",
    "*.extra",
    "*.properties",
    "*.settings",
    "*.ssh_authorized_keys",
    "*.max_surge",
    "*.max_unavailable",
    "*.vgpus",
    "*.vgpu_profile",
    "*.ruleset",
    "*.cards",
    "*.disks",
    "*.networks",
]
"""Fields of texts that name no object."""


def fields(of: object, at: str) -> Iterator[str]:
    """The dotted fields of a Spec that hold text."""
    if isinstance(of, type) and issubclass(of, BaseModel):
        for name, field in of.model_fields.items():
            if _holds_text(field.annotation):
                yield f"{at}.{name}"
            yield from fields(field.annotation, f"{at}.{name}")
    for part in typing.get_args(of):
        yield from fields(part, at)


def _holds_text(of: object) -> bool:
    return of is str or any(map(_holds_text, typing.get_args(of)))


def _fits(field: str, pattern: str) -> bool:
    front, back = field, pattern
    if pattern.startswith("*"):
        back = pattern.removeprefix("*")
        if back.endswith(".*"):
            return back.removesuffix("*") in field
        return front.endswith(back)
    return front == back


def test_every_text_is_looked_up_by_name_or_path_or_says_why_not() -> None:
    found = {field for kind in KINDS for field in fields(registry.kind(kind).Spec, kind)}
    named = {*SEVERAL, *ELSEWHERE}
    assert named <= found, named - found
    patterns = [*(each for group in PATHLESS.values() for each in group), *NOTHING]
    left = {field for field in found - named if not any(_fits(field, each) for each in patterns)}
    assert left == set()
    unused = [each for each in patterns if not any(_fits(field, each) for field in found - named)]
    assert unused == []


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A sandbox with other people's objects, which the tests of this module only read."""
    folder = tmp_path_factory.mktemp("untidy")
    yield (running := start(untidy.world(folder), folder / "state", pace=0))
    stop(running.state)


def said(kind: str, path: Path, field: str, value: str, **settings: object) -> Path:
    """The kind's example as a site of the untidy world, with this field. It names no datacenter."""
    given = untidy.meant(yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader), paths=True)
    given["vcenter"].pop("datacenter")
    (spec,) = list(given[kind].values())[:1]
    spec |= settings
    *inner, leaf = field.split(".")[1:]
    for each in inner:
        spec = spec[each]
    spec[leaf] = [value] if leaf.endswith("s") else value
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    (path.parent / "sources").symlink_to(SPECS / "kinds/sources")
    return path


MORE: dict[str, dict[str, Any]] = {
    "storage_policy.tag.datastores": {"tag": {"category": "kind", "name": "gpu", "datastores": ["local"]}}
}
"""What the example needs beside, to have the field."""


@pytest.mark.parametrize("field", SEVERAL)
def test_a_name_that_several_have_is_refused_with_their_paths_and_a_path_is_not(
    field: str, crowded: Running, tmp_path: Path
) -> None:
    kind, name = field.partition(".")[0], SEVERAL[field]
    site = said(kind, tmp_path / "site.yaml", field, name, **MORE.get(field, {}))
    own = untidy.PATHS[field.rpartition(".")[2]].format(name)
    problems = [each for each in plan(site, crowded).problems if f"s are called {name}" in each.what]
    assert problems, plan(site, crowded).problems
    assert own in problems[0].why
    assert "/abroad/elsewhere/" in problems[0].why
    assert problems[0].next == "write the path of the one that is meant"
    site.write_text(site.read_text().replace(f" {name}\n", f" {own}\n"))
    assert [each for each in plan(site, crowded).problems if each.what.startswith(f"{kind}/")] == []


def test_a_datacenter_whose_name_two_have_is_refused_with_their_paths(
    crowded: Running, tmp_path: Path
) -> None:
    given = yaml.load(EXAMPLES["resource_pool"].read_text(), yaml.BaseLoader)
    given["vcenter"]["datacenter"] = "dc"
    (site := tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
    with pytest.raises(BfinfraError, match=r"2 datacenters are called dc.*/abroad/dc, /dc.*write the path"):
        apply(site, crowded)

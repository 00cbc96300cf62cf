"""What bfinfra privileges prints is enough, and one right fewer fails with its name; the whole of it is tried
by script/torture rights.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from rights.given import Site, each_one, give, named, without, world
from rights.lifecycles import Refused, lived, needed

from bfinfra.kinds import kind, names
from bfinfra.model.rights import Use


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with world(tmp_path_factory.mktemp("rights")) as sandbox:
        yield sandbox


@pytest.fixture
def site(small, tmp_path, monkeypatch):
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    small.reset()
    return lambda kind: Site.of(kind, tmp_path / "site")


ENOUGH = [(name, Use.APPLY) for name in names() if any(step.rights for step in kind(name).step_types)]
CHANGE = (
    "bitfusion_server",
    "supervisor_namespace",
    "tanzu_cluster",
    "namespace",
    "workload",
    "token_secret",
    "registry_credential",
    "nvidia_device_plugin",
)
"""What is changed and mended here as well."""
FEWER_DO = [
    ("bitfusion_server", Use.DESTROY),
    ("token_secret", Use.DESTROY),
    ("tanzu_cluster", Use.PLAN),
    ("token_secret", Use.PLAN),
    ("workload", Use.WATCH),
    ("gpu_operator by claims", Use.APPLY),
]


@pytest.mark.thorough("namespace-apply", "virtual_machine-apply")
@pytest.mark.parametrize(("kind", "use"), [*ENOUGH, *FEWER_DO])
def test_what_is_printed_is_enough(kind, use, small, site):
    found = site(kind)
    lived(found, small, use, lambda: give(small, found, needed(found, small, use)), whole=kind in CHANGE)


FEW = [
    ("gpu_host", Use.APPLY, "Host.Config.PciPassthru"),
    ("gpu_host", Use.APPLY, "Global.ManageCustomFields"),
    ("bitfusion_server", Use.APPLY, "Network.Assign"),
    ("bitfusion_server", Use.DESTROY, "VirtualMachine.Inventory.Delete"),
    ("supervisor_namespace", Use.PLAN, "StorageProfile.View"),
    ("supervisor_namespace", Use.APPLY, "Namespaces.Configure"),
    ("token_secret", Use.PLAN, "list jobs.batch"),
    ("token_secret", Use.APPLY, "create secrets"),
    ("workload", Use.DESTROY, "delete configmaps"),
    ("workload", Use.WATCH, "watch jobs.batch"),
    ("gpu_operator by claims", Use.PLAN, "list resourceslices.resource.k8s.io"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "use", "name"), FEW)
def test_one_fewer_fails_and_is_named(kind, use, name, small, site):
    found = site(kind)
    rights = needed(found, small, use)
    place, _ = next(each for each in each_one(rights) if each[1] == name)
    with pytest.raises(Refused) as refused:
        lived(found, small, use, lambda: give(small, found, without(rights, place, name)))
    assert named(name) in str(refused.value)


LIBRARY = "    library: {name: appliances, datastore: local}\n    ova: {file"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "fewer",
    [
        "",
        "ContentLibrary.CreateLocalLibrary",
        "ContentLibrary.AddLibraryItem",
        "ContentLibrary.UpdateSession",
    ],
)
def test_a_library_asks_for_rights_of_its_own(fewer, small, site):
    found = site("bitfusion_server")
    found = replace(found, text=found.text.replace("    ova: {file", LIBRARY))
    rights = needed(found, small, Use.APPLY)
    if not fewer:
        lived(found, small, Use.APPLY, lambda: give(small, found, rights))
        return
    place, _ = next(each for each in each_one(rights) if each[1] == fewer)
    with pytest.raises(Refused, match=fewer):
        lived(found, small, Use.APPLY, lambda: give(small, found, without(rights, place, fewer)))

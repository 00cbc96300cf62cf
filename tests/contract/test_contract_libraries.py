"""Content libraries as a store of appliances: filled once, deployed from as often as one likes."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace

import pytest
from contract.calls import Account, call, lacks
from contract.machines import DATA, MARK, REQUIRED, gone, import_spec, imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.content import ContentLibraries, Library, Subscription
from bfinfra.backends.vcenter.library import ITEMS, Libraries
from bfinfra.backends.vcenter.library_items import Item
from bfinfra.backends.vcenter.vm import Appliance, Deployment, Import
from bfinfra.model import process
from bfinfra.model.errors import Missing, Rejected

NONE = "vcsim: /api/content and /api/vcenter/ovf are not there"


def appliance(wanted: Import) -> Appliance:
    """What an import's files are in a library."""
    files = {f"{wanted.name}.ovf": wanted.descriptor.encode(), **dict.fromkeys(wanted.files, DATA)}
    digests = {name: ("SHA256", hashlib.sha256(content).hexdigest()) for name, content in files.items()}
    return Appliance(
        digest=digests[f"{wanted.name}.ovf"][1],
        title=wanted.name,
        files={name: len(content) for name, content in files.items()},
        digests=digests,
        open=lambda name: io.BytesIO(files[name]),
    )


def deployment(wanted: Import) -> Deployment:
    """The same machine, deployed."""
    return Deployment(
        name=wanted.name,
        folder=wanted.folder,
        pool=wanted.pool,
        host=wanted.host,
        datastore=wanted.datastore,
        networks=wanted.networks,
        extra=wanted.hardware.extra,
    )


def stored(vc: VCenter, wanted: Import, **changes: str) -> tuple[str, list[int]]:
    """The item, and the progress that the upload reported."""
    progress: list[int] = []
    kept = replace(appliance(wanted), **changes)
    return vc.libraries.store(
        "appliances", wanted.datastore, kept, lambda done, _: progress.append(done)
    ), progress


@call(
    "library.store",
    "library.deploy",
    case="stored once, deployed with its mark; the second time nothing is uploaded",
)
@lacks(NONE)
def test_what_a_library_holds_is_deployed_without_an_upload(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    wanted = import_spec(vcenter, vc, "from-a-library", disk=True)
    item, progress = stored(vc, wanted)
    assert progress[-1] == len(DATA) + len(wanted.descriptor.encode())
    assert stored(vc, wanted) == (item, [])
    moid = vc.libraries.deploy(item, deployment(wanted))
    vcenter.closing.append(lambda: gone(vc, moid))
    (found,) = vc.machines.read([moid], [MARK])
    assert (found.name, found.extra) == ("from-a-library", {MARK: "mark of from-a-library"})


@call("library.store", case="begun by a process that is no more")
@lacks(NONE)
def test_what_an_ended_process_left_is_taken_over(
    vcenter: VCenterSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    vc = vcenter.open()
    wanted = import_spec(vcenter, vc, "left", disk=True)
    monkeypatch.setattr(process, "ended", lambda who: who == "elsewhere/0/1")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="cut"):
        patch.setattr(process, "me", lambda: "elsewhere/0/1")
        patch.setattr(Libraries, "_drop", lambda *_: None)
        vc.libraries.store(
            "appliances", wanted.datastore, replace(appliance(wanted), open=cut), lambda *_: None
        )
    item, progress = stored(vc, wanted)
    assert progress[-1] == len(DATA) + len(wanted.descriptor.encode())
    assert vc.rest.get(f"{ITEMS}/{item}")["description"].endswith(process.me())


def cut(name: str) -> io.BytesIO:
    raise OSError("cut")


@call("library.store", case="the item holds other files")
@lacks(NONE)
def test_an_item_that_somebody_changed_is_not_believed(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    wanted = import_spec(vcenter, vc, "changed", disk=True)
    stored(vc, wanted)
    with account.refused(Rejected):
        stored(
            vc,
            replace(wanted, descriptor=wanted.descriptor.replace("Server", "Sorver")),
            digest=appliance(wanted).digest,
        )


@call("library.deploy", case="the item is gone")
def test_an_item_that_is_gone_is_missing(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    with account.refused(Missing):
        vc.libraries.deploy(
            "b0b0b0b0-0000-4000-8000-000000000000", deployment(import_spec(vcenter, vc, "nothing", disk=True))
        )


@call(
    "content.datastores",
    "content.create",
    "content.list",
    "content.update",
    "content.items",
    "content.delete",
    case="a local and a subscribed one: made, read, changed, looked into, removed, removed again",
)
@lacks(NONE)
def test_the_life_of_libraries(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    libraries, follows = (
        ContentLibraries(vc.rest),
        Subscription("https://wp-content.vmware.com/v2/latest/lib.json"),
    )
    store = next(iter(libraries.datastores().values()))
    for kind, given, changed in (
        ("local", None, None),
        ("subscribed", follows, replace(follows, on_demand=False)),
    ):
        libraries.create(Library(f"contract-{kind}", store, "ours", given))
        made = next(each for each in libraries.list() if each.name == f"contract-{kind}")
        assert (libraries.datastores()[made.datastore], made.description, made.subscription) == (
            store,
            "ours",
            given,
        )
        libraries.update(made.id, replace(made, description="changed", subscription=changed), lambda _: True)
        again = next(each for each in libraries.list() if each.id == made.id)
        assert (again.description, again.subscription) == ("changed", changed)
        assert libraries.items(made.id) == ()
        libraries.delete(made.id, subscribed=kind == "subscribed")
        libraries.delete(made.id, subscribed=kind == "subscribed")
    assert not [each for each in libraries.list() if each.name.startswith("contract-")]
    with pytest.raises(Missing, match="no datastore nowhere"):
        libraries.create(Library("contract", "nowhere"))


@call("content.items", case="what a local library holds is named")
@lacks(NONE)
def test_items_are_named(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    wanted = import_spec(vcenter, vc, "named", disk=True)
    stored(vc, wanted)
    (library,) = (each.id for each in ContentLibraries(vc.rest).list() if each.name == "appliances")
    (item,) = ContentLibraries(vc.rest).items(library)
    assert item.startswith(appliance(wanted).name)


@call("library_items.declared", case="what an OVF lets one set; an item that isn't there")
@lacks(NONE)
def test_an_item_says_what_can_be_set(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    wanted = import_spec(vcenter, vc, "declaring", disk=True)
    item, _ = stored(vc, wanted)
    declared = {each.key: each.type for each in vc.library_items.declared(item, wanted.pool)}
    assert set(REQUIRED) - {"vcenter_guid"} <= set(declared)
    assert declared["customer_password"] == "password"
    with account.refused(Missing):
        vc.library_items.declared("nothing", wanted.pool)


@call("library_items.find", case="an OVF, a VM template, and what is not there")
@lacks(NONE)
def test_items_are_found_by_their_names(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    wanted = import_spec(vcenter, vc, "found", disk=True)
    item, _ = stored(vc, wanted)
    assert vc.library_items.find("appliances", appliance(wanted).name) == Item(item, "ovf")
    (library,) = (each.id for each in ContentLibraries(vc.rest).list() if each.name == "appliances")
    made = vc.rest.post(
        "/api/vcenter/vm-template/library-items",
        {"source_vm": imported(vcenter, vc, "origin"), "name": "a-template", "library": library},
    )
    (template,) = (each.moid for each in vc.machines.survey(MARK) if each.name == "a-template")
    vcenter.closing.append(lambda: gone(vc, template))
    assert vc.library_items.find("appliances", "a-template") == Item(str(made), "vm-template", template)
    assert (
        vc.library_items.find("appliances", "nothing"),
        vc.library_items.find("nowhere", "a-template"),
    ) == (None, None)

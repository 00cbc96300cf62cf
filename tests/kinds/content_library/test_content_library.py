from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, made, plan
from kinds.unmanaged import Entry, Look
from pydantic import ValidationError
from sandbox.asking import Rest

from bfinfra.backends.vcenter.content import Subscription
from bfinfra.backends.vcenter.places import Thing
from bfinfra.kinds.vcenter.content_library import (
    RELEASES,
    ContentLibrary,
    ContentLibraryFacts,
    Create,
    Delete,
    Spec,
    State,
    Update,
    _one_of_each_name,
)
from bfinfra.model.compare import Change
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import Ready
from bfinfra.sandbox import Running

MARK = Mark("site", "content_library/releases")

STORES = tuple(Thing(moid=name, name=name) for name in ("shared", "local"))


def written(**changes: Any) -> Spec:
    return Spec.model_validate({"datastore": "shared", "subscription": {}, **changes})


def steps(spec: Spec | None, state: State | None) -> Any:
    return ContentLibrary.steps("releases", spec, state, PlanContext(MARK, facts=ContentLibraryFacts(STORES)))


def existing(spec: Spec, **changes: Any) -> State:
    (step,) = steps(spec, None)
    return State(
        mark=Mark.decode(step.library.description), library=replace(step.library, id="lib-1", **changes)
    )


def test_by_default_it_follows_vmwares_library_of_releases():
    (step,) = steps(written(), None)
    assert isinstance(step, Create)
    assert step.library.subscription == Subscription(RELEASES)
    assert Mark.decode(step.library.description) == MARK.committed(written().applied())


def test_a_mirror_and_what_somebody_changed_are_one_field():
    assert steps(written(), existing(written())) == ()
    (step,) = steps(written(subscription={"url": "https://mirror/lib.json"}), existing(written()))
    assert (type(step), step.library.id, step.changes) == (
        Update,
        "lib-1",
        (Change("subscription.url", RELEASES, "https://mirror/lib.json"),),
    )
    lazy = existing(written(), subscription=Subscription(RELEASES, on_demand=False))
    assert steps(written(), lazy) == (), "the file doesn't say it"
    (step,) = steps(written(subscription={"on_demand": True}), lazy)
    assert step.changes == (Change("subscription.on_demand", False, True),)
    (step,) = steps(None, existing(written()))
    assert (type(step), step.subscribed) == (Delete, True)


@pytest.mark.parametrize(
    ("wanted", "field", "says"),
    [
        (written(datastore="local"), "datastore", "can't move"),
        (written(subscription=None), "subscription", "can't become"),
    ],
)
def test_what_a_library_can_not_become_is_refused(wanted, field, says):
    with pytest.raises(Refusal, match=says) as refused:
        steps(wanted, existing(written()))
    assert refused.value.field == field


@pytest.mark.parametrize("spec", [written(), None], ids=["wanted", "removed"])
def test_one_of_several_libraries_of_a_name_is_refused_with_their_ids(spec):
    state = replace(existing(written()), twins=("lib-2",))
    with pytest.raises(Refusal, match="2 content libraries are called releases") as refused:
        steps(spec, state)
    assert refused.value.problems[0].why == "their ids are lib-1, lib-2"


def test_of_libraries_of_one_name_the_marked_one_is_meant_whichever_is_read_first():
    ours = existing(written()).library
    theirs = replace(ours, id="lib-2", description="theirs")
    third = replace(theirs, id="lib-3")
    for listed in ([ours, theirs, third], [third, theirs, ours]):
        assert [*_one_of_each_name(listed)] == [(ours, ())]
    assert [*_one_of_each_name([theirs, third])] == [(theirs, ("lib-3",))]


def test_a_datastore_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(Refusal, match="did you mean shared"):
        steps(written(datastore="shard"), None)


def test_it_is_ready_once_it_was_synchronised_unless_nobody_does_that():
    kind = object.__new__(ContentLibrary)
    assert kind.ready(written(), existing(written(), synced=False)).status is Ready.WAITING
    assert kind.ready(written(), existing(written())).status is Ready.READY
    by_hand = written(subscription={"automatic_sync": False})
    assert kind.ready(by_hand, existing(by_hand, synced=False)).status is Ready.READY


@pytest.mark.parametrize(
    "changes",
    [{"subscription": {"url": "lib.json"}}, {"subscription": {"thumbprint": "AB"}}, {"datastore": None}],
)
def test_what_can_not_be_is_an_error_in_the_file(changes):
    with pytest.raises(ValidationError):
        written(**changes)


@pytest.mark.parametrize(("length", "known"), [(20, True), (32, True), (19, False), (26, False), (33, False)])
def test_a_thumbprint_is_a_sha_1_or_a_sha_256(length, known):
    digits = ":".join(["aB"] * length)
    try:
        assert written(subscription={"thumbprint": digits}).subscription.thumbprint == digits
    except ValidationError:
        assert not known
    else:
        assert known


def test_a_namespace_of_the_same_file_gets_it_and_what_others_keep_in_it_is_named(sandbox, tmp_path):
    given = yaml.safe_load(EXAMPLES["supervisor_namespace"].read_text())
    given["supervisor_namespace"]["team-a"]["content_libraries"] = ["images"]
    given["content_library"] = {"images": {"datastore": "shared"}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert made(apply(path, sandbox))
    rest = Rest(sandbox)
    (library,) = rest.call("POST", "/api/content/library?action=find", {"name": "images"}).data
    assert (
        rest.call(
            "POST", "/api/content/library/item", {"library_id": library, "name": "theirs", "type": "iso"}
        ).status
        == 201
    )
    item = next(
        each for each in plan(path, sandbox, destroy=True).items if each.key.kind == "content_library"
    )
    assert item.contents == ("item theirs ()",)


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    rest = Rest(sandbox)
    store = next(each["datastore"] for each in rest.get("/api/vcenter/datastore") if each["name"] == "shared")
    made = rest.call(
        "POST",
        "/api/content/local-library",
        {"name": name, "type": "LOCAL", "storage_backings": [{"type": "DATASTORE", "datastore_id": store}]},
    )
    return lambda: rest.get(f"/api/content/library/{made.data}")


UNMANAGED = Entry(
    at="releases",
    plant=unmanaged,
    inside="what is subscribed can be had again; items of a local one are named (test_content_library.py)",
)


CHANGED_FIELDS = [{"description": "words"}, {"datastore": "local"}]

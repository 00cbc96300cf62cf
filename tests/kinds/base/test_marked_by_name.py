"""Objects with a note and a pending name: whose they are at each instant. The objects are folders, which no kind of
bfinfra makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from bfinfra.kinds.vcenter.base.marked_by_name import LONGEST, NAME, Identity, MarkedByName, pending_name
from bfinfra.model.errors import Exists
from bfinfra.model.mark import Mark
from bfinfra.model.rights import ROOT, Entity, holds

SITE = "poc"
MARKED = MarkedByName(
    kind="vm_folder", place="folder", create="Folder.Create", rename="Folder.Rename", delete="Folder.Delete"
)
MARK = Mark(SITE, "vm_folder/gpu", applied={"parent": "vm"})
PENDING = pending_name("gpu", SITE)
THEIRS = Mark("theirs", "vm_folder/gpu")


class Killed(BaseException):
    """The process ends."""


@dataclass(frozen=True)
class Folder:
    name: str
    note: str = ""


@dataclass
class Folders:
    """A server with folders, by id. `left`: the calls until the process that makes them is killed."""

    there: dict[str, Folder] = field(default_factory=dict)
    left: int = 100
    asked: list[str] = field(default_factory=list)

    def _call(self, name: str) -> None:
        if not self.left:
            raise Killed
        self.left -= 1
        self.asked.append(name)

    def _free(self, name: str) -> None:
        if name in [each.name for each in self.there.values()]:
            raise Exists(f"{name} is taken")

    def create(self, name: str) -> str:
        self._call("CreateFolder")
        self._free(name)
        moid = f"group-v{len(self.asked)}"
        self.there[moid] = Folder(name)
        return moid

    def rename(self, moid: str, name: str) -> None:
        self._call("Rename")
        self._free(name)
        self.there[moid] = replace(self.there[moid], name=name)

    def note(self, moid: str, attribute: str, text: str) -> None:
        assert attribute == "bfinfra.vm_folder"
        self._call("SetField")
        self.there[moid] = replace(self.there[moid], note=text)

    def forget(self, moid: str, attribute: str) -> None:
        self.note(moid, attribute, "")

    def remove(self, moid: str) -> None:
        self._call("Destroy_Task")
        del self.there[moid]


def look(folders: Folders) -> Mapping[str, tuple[str, Folder]]:
    """This site's folders with their ids, by name."""
    ids = {id(each): moid for moid, each in folders.there.items()}
    return {
        name: (ids[id(each)], each) for name, each in MARKED.of_site(folders.there.values(), SITE).items()
    }


def wanted(folders: Folders) -> None:
    """A run of a site with the folder."""
    if (found := look(folders).get("gpu")) is None:
        MARKED.make(folders, MARK, folders.create)
    else:
        MARKED.finish(folders, found[0], found[1].name, MARK)


def left_the_site(folders: Folders) -> None:
    """A run of a site without it."""
    for moid, found in look(folders).values():
        unnamed = MARKED.identity(found, SITE).unnamed
        MARKED.remove(folders, moid, "" if unnamed else PENDING)


def killed(run: Callable[[Folders], None], start: Folders, after: int) -> Folders:
    """What is there after so many calls of a run."""
    folders = Folders(dict(start.there), left=after)
    with pytest.raises(Killed):
        run(folders)
    return Folders(folders.there)


def made() -> Folders:
    folders = Folders()
    wanted(folders)
    return folders


def half_made() -> Folders:
    return killed(wanted, Folders(), 1)


def half_removed() -> Folders:
    return killed(left_the_site, made(), 2)


RUNS = [
    *[(wanted, Folders, calls) for calls in (1, 2)],
    *[(wanted, half_made, calls) for calls in (0, 1)],
    *[(wanted, half_removed, calls) for calls in (0, 1)],
    *[(left_the_site, made, calls) for calls in (0, 1, 2)],
    *[(left_the_site, half_made, calls) for calls in (0, 1)],
]
"""A run, what is there before it, and the calls after which it is killed: after each that leaves the folder there."""
amid_each_run = pytest.mark.parametrize(("run", "start", "calls"), RUNS)


def test_an_object_is_made_under_its_pending_name_noted_and_then_named():
    folders = made()
    assert folders.asked == ["CreateFolder", "SetField", "Rename"]
    assert [*folders.there.values()] == [Folder("gpu", MARK.encode())]


def test_an_object_gets_its_pending_name_back_before_its_note_goes_and_then_goes_itself():
    folders = Folders(made().there)
    left_the_site(folders)
    assert folders.asked == ["Rename", "SetField", "Destroy_Task"]
    assert folders.there == {}


def test_a_complete_object_keeps_its_name_and_gets_the_new_note():
    folders = Folders(made().there)
    wanted(folders)
    assert folders.asked == ["SetField"]


@amid_each_run
def test_killed_between_two_calls_it_is_recognised_at_the_next_look(run, start, calls):
    folders = killed(run, start(), calls)
    ((name, (_, found)),) = look(folders).items()
    assert name == "gpu"
    assert MARKED.of_site([found], "theirs") == {}


@amid_each_run
def test_killed_between_two_calls_it_is_finished_by_the_next_run(run, start, calls):
    folders = killed(run, start(), calls)
    wanted(folders)
    assert [*folders.there.values()] == [Folder("gpu", MARK.encode())]


@amid_each_run
def test_killed_between_two_calls_it_is_deleted_once_it_left_the_site(run, start, calls):
    folders = killed(run, start(), calls)
    left_the_site(folders)
    assert folders.there == {}


def test_an_object_without_a_note_has_an_unfinished_mark():
    (found,) = half_made().there.values()
    assert MARKED.identity(found, SITE) == Identity("gpu", replace(MARK, applied=None), unnamed=True)


def test_the_note_of_an_unnamed_object_says_what_was_applied():
    (found,) = killed(wanted, Folders(), 2).there.values()
    assert MARKED.identity(found, SITE) == Identity("gpu", MARK, unnamed=True)


@pytest.mark.parametrize("text", ["", "ours, says Bob", THEIRS.encode()])
def test_a_strangers_object_of_the_same_name_is_never_taken(text):
    folders = Folders({"theirs": Folder("gpu", text)})
    with pytest.raises(Exists):
        wanted(folders)
    assert folders.there["theirs"] == Folder("gpu", text)
    assert [each.name for _, each in look(folders).values()] == [PENDING]
    left_the_site(folders)
    assert folders.there == {"theirs": Folder("gpu", text)}


@pytest.mark.parametrize("address", ["vm_folder/other", "host_folder/gpu"])
def test_an_object_whose_note_is_about_another_name_or_kind_is_never_taken(address):
    assert MARKED.of_site([Folder("gpu", Mark(SITE, address).encode())], SITE) == {}


def test_the_pending_name_of_another_site_is_a_strangers():
    theirs = Folder(pending_name("gpu", "theirs"))
    assert MARKED.identity(theirs, SITE) == Identity(theirs.name, None)
    assert MARKED.of_site([theirs], SITE) == {}
    assert MARKED.of_site([theirs], "theirs") == {"gpu": theirs}


def test_what_another_site_noted_under_our_pending_name_is_its_own():
    assert MARKED.of_site([Folder(PENDING, THEIRS.encode())], SITE) == {}


@pytest.mark.parametrize(
    "name",
    [
        "my gpu",
        pending_name("my gpu", SITE),
        pending_name(PENDING, SITE),
        pending_name(pending_name("gpu", "theirs"), SITE),
        pending_name(PENDING, "theirs"),
        f"{PENDING} (1)",
        PENDING.replace(" ", ""),
        f"{PENDING}0",
        "gpu bfinfra-old",
    ],
)
def test_a_name_with_more_blanks_or_another_suffix_is_a_strangers(name):
    assert MARKED.identity(Folder(name), SITE) == Identity(name, None)


@pytest.mark.parametrize("name", ["gpu-bfinfra-old", "bfinfra-0123456789", PENDING.replace(" ", "")])
def test_a_name_that_only_resembles_a_pending_name_is_made_and_recognised(name):
    folders = Folders()
    mark = Mark(SITE, f"vm_folder/{name}", applied={})
    MARKED.make(folders, mark, folders.create)
    (found,) = folders.there.values()
    assert MARKED.identity(found, SITE) == Identity(name, mark)
    assert MARKED.identity(Folder(pending_name(name, SITE)), SITE).name == name


@pytest.mark.parametrize("name", ["my gpu", "a/b", "a\\b", "50%", "", "n" * (LONGEST + 1)])
def test_a_name_that_no_mark_or_pending_name_can_hold_is_no_name_of_a_resource(name):
    assert not re.fullmatch(NAME, name)
    assert re.fullmatch(NAME, "gpu-1.x_ä(2)")


def test_the_longest_pending_name_fits_into_vcenter():
    assert len(pending_name("n" * LONGEST, "s" * 200)) <= 80


def test_each_way_takes_its_own_privileges_and_those_of_the_note():
    root = holds("definitions", "Global.ManageCustomFields")
    note = "Global.SetCustomField"
    assert MARKED.to_make("More") == (holds("folder", "Folder.Create", "Folder.Rename", "More", note), root)
    assert MARKED.to_finish("More") == (holds("folder", "Folder.Rename", "More", note), root)
    assert MARKED.to_remove() == (holds("folder", "Folder.Rename", "Folder.Delete", note), root)
    folder = Entity("/dc/vm/gpu", "Folder")
    assert MARKED.places(folder) == {"folder": (folder,), "definitions": (ROOT,)}

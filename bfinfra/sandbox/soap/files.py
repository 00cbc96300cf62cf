"""FileManager and DatastoreBrowser: folders and files by name; machines' files are there by themselves."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import disks
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER, BROWSER = "vim.FileManager", "vim.host.DatastoreBrowser"


def located(inventory: Inventory, path: str, near: Any) -> tuple[Managed, str]:
    """The datastore and the path in it of "[name] folder/file". `near`: its datacenter, or an object
    there; the first datacenter where it is None. InvalidDatastorePath, InvalidDatastore.
    """
    name, bracket, rest = path.removeprefix("[").partition("]")
    if not path.startswith("[") or not bracket or ".." in rest.split("/"):
        raise vim.fault.InvalidDatastorePath(datastorePath=path, msg=f"Invalid datastore path '{path}'.")
    at = inventory.datacenters()[0] if near is None else inventory.get(near)
    store = inventory.datastore(name, at)
    if store is None:
        raise vim.fault.InvalidDatastore(name=name, msg=f"There is no datastore '{name}'.")
    return store, rest.strip().strip("/")


def listing(inventory: Inventory, store: Managed) -> dict[str, dict[str, Any]]:
    """All files of a datastore by path: what was made there, and what machines consist of."""
    found = dict(store.hidden["files"])
    for vm in inventory.vms():
        for path, size in [
            (vm["config"].files.vmPathName, 3000),
            *((each.backing.fileName, each.capacityInBytes or 0) for each in disks(vm)),
        ]:
            name, _, rest = (path or "").removeprefix("[").partition("] ")
            if name == store.name and rest and store.ref in vm["datastore"]:
                found[rest] = {"size": size}
                found.setdefault(rest.rpartition("/")[0], {"folder": True})
    return found


def leave_folder(inventory: Inventory, store: Managed, name: str) -> None:
    """An empty folder for a machine that is refused after all; with a number where its name is taken.

    Source: vcsim, which makes the folder before it refuses the name.
    """
    there = listing(inventory, store)
    names = (name, *(f"{name} ({number})" for number in range(len(there) + 1)))
    store.hidden["files"][next(each for each in names if each not in there)] = {"folder": True}
    inventory.touch(store)


@method(MANAGER, "MakeDirectory")
def make_directory(call: Call, _: Managed, args: Any) -> None:
    """A folder. FileAlreadyExists; PathNotFound where its parent isn't there and isn't to be made."""
    store, path = located(call.inventory, args.name, args.datacenter)
    there = listing(call.inventory, store)
    if path in there:
        raise vim.fault.FileAlreadyExists(file=args.name, msg=f"The file {args.name} already exists.")
    parent = path.rpartition("/")[0]
    if parent and parent not in there and not args.createParentDirectories:
        raise vim.fault.FileNotFound(
            file=f"[{store.name}] {parent}", msg=f"File [{store.name}] {parent} was not found"
        )
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        store.hidden["files"].setdefault("/".join(parts[:depth]), {"folder": True})
    call.inventory.touch(store)


@method(MANAGER, "DeleteDatastoreFile_Task")
def delete(call: Call, this: Managed, args: Any) -> vim.Task:
    """Delete a file, or a folder with all in it."""
    store, path = located(call.inventory, args.name, args.datacenter)

    def gone() -> None:
        hit = [each for each in listing(call.inventory, store) if each == path or each.startswith(f"{path}/")]
        if not hit:
            raise vim.fault.FileNotFound(file=args.name, msg=f"File {args.name} was not found")
        if any(each not in store.hidden["files"] for each in hit):
            raise vim.fault.FileLocked(
                file=args.name, msg=f"The file {args.name} belongs to a virtual machine."
            )
        for each in hit:
            del store.hidden["files"][each]
        call.inventory.touch(store)

    return tasks.start(call, this, "FileManager.deleteFile", gone, lock=False)


@method(BROWSER, "SearchDatastore_Task", writes=False)
def search(call: Call, this: Managed, args: Any) -> vim.Task:
    """Start a search of the direct contents of a folder."""
    store, path = located(call.inventory, args.datastorePath, this["datastore"][0])
    return tasks.start(
        call, this, "HostDatastoreBrowser.search", lambda: found_in(call, store, path, args), lock=False
    )


def found_in(call: Call, store: Managed, path: str, args: Any) -> Any:
    """The files of a folder that match. FileNotFound where the folder isn't there."""
    there = listing(call.inventory, store)
    if path and path not in there:
        raise vim.fault.FileNotFound(file=args.datastorePath, msg=f"File {args.datastorePath} was not found")
    patterns = (args.searchSpec and args.searchSpec.matchPattern) or ["*"]
    files = [
        vim.host.DatastoreBrowser.FolderInfo(path=name.rpartition("/")[2])
        if each.get("folder")
        else vim.host.DatastoreBrowser.FileInfo(path=name.rpartition("/")[2], fileSize=each["size"])
        for name, each in sorted(there.items())
        if name.rpartition("/")[0] == path
        and any(fnmatch.fnmatch(name.rpartition("/")[2], pattern) for pattern in patterns)
    ]
    return vim.host.DatastoreBrowser.SearchResults(
        datastore=store.ref, folderPath=f"[{store.name}] {path}", file=files
    )


@method("vim.Datastore", "DestroyDatastore")
def refuse_destroy(_: Call, this: Managed, __: object) -> None:
    """Refuse it: datastores are those of the world file."""
    raise vmodl.fault.NotSupported(
        msg=f"The sandbox's datastores come from the world file: {this.name} stays."
    )

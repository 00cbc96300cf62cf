"""ResourcePool.ImportVApp and its HttpNfcLease: initializing, ready, done or error; a lease that is not
renewed ends, and its machine is removed.
"""

from __future__ import annotations

import hashlib
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vmtypes import moid, vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.files import leave_folder
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.ovf_hardware import DEVICE, disk_address
from bfinfra.sandbox.soap.placing import datastore_for, host_for
from bfinfra.sandbox.soap.vm_create import make
from bfinfra.sandbox.soap.vm_rights import may_create

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

LEASE = "vim.HttpNfcLease"
TIMEOUT = 300.0


@method("vim.ResourcePool", "ImportVApp")
def import_vapp(call: Call, this: Managed, args: Any) -> Any:
    """The machine exists at once, its disks empty; the lease is ready some time later. What the specification
    breaks comes at once.

    DuplicateName where a sibling has the name: then an empty folder is left on the datastore.
    """
    if not isinstance(args.spec, vim.vm.VmImportSpec):
        raise vmodl.fault.NotSupported(msg="The sandbox imports virtual machines, not vApps of several.")
    inventory = call.inventory
    folder = inventory.get(args.folder) if args.folder else root_folder(inventory, this)
    host = inventory.get(args.host) if args.host else None
    may_create(call, folder, this.ref, args.spec.configSpec)
    spec = args.spec.configSpec
    try:
        vm = make(call, folder, (this, host, None), spec)
    except vim.fault.DuplicateName:
        home = host_for(inventory, this, host, spec)
        leave_folder(
            inventory, datastore_for(inventory, home, spec.files and spec.files.vmPathName), spec.name
        )
        raise
    lease = inventory.add(
        vim.HttpNfcLease,
        f"session[{call.session.key if call.session else ''}]{inventory.new_id('lease-')}",
        {"vm": vm.moid, "files": {}, "local": call.local},
        state="initializing",
        initializeProgress=0,
        transferProgress=0,
        mode="pushOrGet",
        capabilities=vim.HttpNfcLease.Capabilities(pullModeSupported=False, corsSupported=False),
    )
    task = import_task(call, vm, lease)
    lease.hidden["task"] = vm.hidden["import_task"] = task.moid
    vm.hidden["lease"] = lease.moid
    inventory.touch(vm)
    renew(inventory, lease)
    injected = call.task_fault
    inventory.clock.after(tasks.duration_of(inventory), lambda: ready(inventory, lease, injected))
    return lease.ref


def root_folder(inventory: Inventory, pool: Managed) -> Managed:
    """The machine folder of the pool's datacenter."""
    datacenter = next(each for each in inventory.ancestors(pool) if each.is_a(vim.Datacenter))
    return inventory.get(datacenter["vmFolder"])


def import_task(call: Call, vm: Managed, lease: Managed) -> Managed:
    """The task that runs as long as the lease; cancelling it aborts the lease."""
    task = tasks.begin(call, vm, "ResourcePool.ImportVAppLRO")
    task.hidden["lease"] = lease.moid
    tasks.run(call.inventory, task)
    record(
        call,
        vim.event.VmBeingDeployedEvent,
        vm,
        f"Importing {vm.name}",
        template=False,
        srcTemplate=vim.event.VmEventArgument(vm=vm.ref, name=vm.name),
    )
    return task


def ready(inventory: Inventory, lease: Managed, injected: object) -> None:
    """From initializing to ready: the upload addresses are known. A fault rule's fault ends it instead."""
    with inventory.lock:
        if lease["state"] != "initializing" or inventory.objects.get(lease.moid) is not lease:
            return
        if injected is not None:
            fail(inventory, lease, injected)
            return
        vm = inventory.objects[lease.hidden["vm"]]
        disks = [each for each in vm["config"].hardware.device if isinstance(each, DEVICE.VirtualDisk)]
        lease["info"] = vim.HttpNfcLease.Info(
            lease=lease.ref,
            entity=vm.ref,
            totalDiskCapacityInKB=sum(each.capacityInKB for each in disks),
            leaseTimeout=int(timeout(inventory)) or 1,
            deviceUrl=[device_url(inventory, lease, vm, disk, index) for index, disk in enumerate(disks)],
            hostMap=[],
        )
        lease["state"], lease["initializeProgress"] = "ready", 100
        renew(inventory, lease)
        inventory.touch(lease)


def device_url(inventory: Inventory, lease: Managed, vm: Managed, disk: Any, index: int) -> Any:
    """Return the host to which a disk is uploaded: the machine's host; "*", the server itself, for a client
    that reached vCenter by a loopback address.
    """
    host = inventory.get(vm["runtime"].host)
    controller = next((each for each in vm["config"].hardware.device if each.key == disk.controllerKey), None)
    address, name = disk_address(disk, controller), f"disk-{index}.vmdk"
    where = "*" if lease.hidden["local"] else host.name
    return vim.HttpNfcLease.DeviceUrl(
        key=f"/{vm.moid}/{address}",
        importKey=f"/{vm.name}/{address}",
        url=f"https://{where}/nfc/{public_id(lease)}/{name}",
        sslThumbprint="" if lease.hidden["local"] else thumbprint(inventory, host),
        disk=True,
        targetId=name,
        datastoreKey=moid(disk.backing.datastore),
        fileSize=0,
    )


def thumbprint(inventory: Inventory, host: Managed) -> str:
    """SHA-1 of the host's certificate: "AB:CD:…"; "" where hosts have none."""
    if inventory.certificate is None:
        return ""
    digest = (
        hashlib.sha1(ssl.PEM_cert_to_DER_cert(inventory.certificate(host.name)), usedforsecurity=False)
        .hexdigest()
        .upper()
    )
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def public_id(lease: Managed) -> str:
    """The lease's name in upload addresses."""
    return lease.moid.rpartition("]")[2]


def timeout(inventory: Inventory) -> float:
    """Seconds after which a lease without a keep-alive expires; `pace` doesn't shorten them."""
    return float(inventory.world.durations.get("lease", TIMEOUT))


def renew(inventory: Inventory, lease: Managed) -> None:
    """A sign of life: the lease's end moves away."""
    lease.hidden["deadline"] = time.monotonic() + timeout(inventory)
    watch(inventory, lease)


def watch(inventory: Inventory, lease: Managed) -> None:
    """One timer for each lease, set again when its end moves."""
    if lease.hidden.get("watched"):
        return
    lease.hidden["watched"] = True

    def check() -> None:
        with inventory.lock:
            lease.hidden["watched"] = False
            if (
                lease["state"] not in ("initializing", "ready")
                or inventory.objects.get(lease.moid) is not lease
            ):
                return
            if time.monotonic() >= lease.hidden["deadline"]:
                fail(
                    inventory,
                    lease,
                    vim.fault.Timedout(msg="The lease timed out: no progress was reported in time."),
                )
            else:
                watch(inventory, lease)

    timer = threading.Timer(max(0.0, lease.hidden["deadline"] - time.monotonic()) + 0.001, check)
    timer.daemon = True
    timer.start()


def fail(inventory: Inventory, lease: Managed, error: object) -> None:
    """End the lease with an error, and remove its machine."""
    vm = inventory.objects.get(lease.hidden["vm"])
    lease["state"], lease["error"] = "error", error
    end_task(inventory, lease, error)
    inventory.touch(lease)
    if vm is not None:
        inventory.remove(vm)


def end_task(inventory: Inventory, lease: Managed, error: object, result: object = None) -> None:
    """The import's task ends with its lease."""
    task = inventory.objects.get(lease.hidden["task"])
    if task is not None:
        info = task["info"]
        info.state, info.completeTime, info.cancelable = (
            "error" if error else "success",
            now(inventory),
            False,
        )
        info.error, info.result, info.progress = error, result, None
        inventory.touch(task)


def need(lease: Managed, *states: str) -> None:
    """Timedout for a lease that ran out; InvalidState where it is in none of the states."""
    if isinstance(lease.props.get("error"), vim.fault.Timedout):
        raise vim.fault.Timedout(msg="The lease timed out.")
    if lease["state"] not in states:
        raise vim.fault.InvalidState(
            msg=f"The lease is in the state '{lease['state']}', which doesn't allow this."
        )


@method(LEASE, "HttpNfcLeaseProgress")
def progress(call: Call, this: Managed, args: Any) -> None:
    """Per cent done: keeps the lease alive."""
    need(this, "initializing", "ready")
    if not 0 <= args.percent <= 100:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="percent", msg=f"A specified parameter was not correct: percent {args.percent}"
        )
    this["transferProgress"] = args.percent
    task = call.inventory.get(vim.Task(this.hidden["task"]))
    task["info"].progress = args.percent
    renew(call.inventory, this)
    call.inventory.touch(this, task)


@method(LEASE, "HttpNfcLeaseComplete")
def complete(call: Call, this: Managed, _: object) -> None:
    """Every disk came whole: the machine is ready. InvalidState names those that didn't."""
    need(this, "ready")
    files = this.hidden["files"]
    expected = call.inventory.objects["OvfManager"].hidden.get("expected", {})
    missing = [
        url.targetId
        for url in this["info"].deviceUrl
        if not came(files.get(url.targetId), expected.get(url.importKey), started=bool(files))
    ]
    if missing:
        raise vim.fault.InvalidState(
            msg=f"The lease can't be completed: {', '.join(missing)} did not come whole."
        )
    this["state"], this["transferProgress"] = "done", 100
    vm = call.inventory.get(this["info"].entity)
    vm.hidden["uploaded"] = {
        name: {"size": each["size"], "sha256": each["sha256"]} for name, each in files.items()
    }
    end_task(call.inventory, this, None, vm.ref)
    call.inventory.touch(this, vm)
    record(
        call,
        vim.event.VmDeployedEvent,
        vm,
        f"Imported {vm.name}",
        template=False,
        srcTemplate=vim.event.VmEventArgument(vm=vm.ref, name=vm.name),
    )


def came(file: dict[str, Any] | None, size: int | None, *, started: bool) -> bool:
    """Return whether a disk was uploaded whole and has the descriptor's size (0: the descriptor gives no
    size; None: it has no file for the disk).
    """
    if file is None:
        return size is None and started
    return bool(file["whole"]) and size in (None, 0, file["size"])


@method(LEASE, "HttpNfcLeaseAbort")
def abort(call: Call, this: Managed, args: Any) -> None:
    """Abort the lease, and remove its machine."""
    need(this, "initializing", "ready")
    fail(call.inventory, this, args.fault or vmodl.fault.RequestCanceled(msg="The import was aborted."))


@method(LEASE, "HttpNfcLeaseGetManifest", writes=False)
def manifest(_: Call, this: Managed, __: object) -> Any:
    """Sizes and digests of what came."""
    need(this, "ready", "done")
    info = this["info"]
    return [
        vim.HttpNfcLease.ManifestEntry(
            key=url.key,
            sha1=found["sha1"],
            checksum=found["sha256"],
            checksumType="sha256",
            size=found["size"],
            disk=True,
            capacity=0,
            populatedSize=found["size"],
        )
        for url in info.deviceUrl
        if (found := this.hidden["files"].get(url.targetId))
    ]


def cancelled(inventory: Inventory, task: Managed) -> bool:
    """Abort the lease of an import's task; whether it had one."""
    lease = inventory.objects.get(task.hidden.get("lease", ""))
    if lease is None:
        return False
    fail(inventory, lease, vmodl.fault.RequestCanceled(msg="The task was canceled by a user."))
    return True


tasks.ON_CANCEL.append(cancelled)

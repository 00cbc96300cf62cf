"""What others do in the lives of several kinds, with clients that share nothing with bfinfra."""

from __future__ import annotations

from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import administrator, other, paths

from bfinfra.backends.kubernetes.marks import SITE
from bfinfra.model import process
from bfinfra.model.rights import Use
from bfinfra.sandbox import Running


def add_disk_to_template(sandbox: Running, use: Use) -> None:
    """Gives the template a second disk."""
    if use is Use.DESTROY:
        return
    disk = vim.vm.device.VirtualDisk(
        key=-1,
        controllerKey=1000,
        unitNumber=0,
        capacityInKB=16 << 20,
        backing=vim.vm.device.VirtualDisk.FlatVer2BackingInfo(diskMode="persistent"),
    )
    scsi = vim.vm.device.ParaVirtualSCSIController(key=1000, busNumber=0, sharedBus="noSharing")
    added = [
        vim.vm.device.VirtualDeviceSpec(operation="add", device=scsi),
        vim.vm.device.VirtualDeviceSpec(operation="add", fileOperation="create", device=disk),
    ]
    with administrator(sandbox) as si:
        WaitForTask(paths(si)["/dc/vm/centos-7.6"].Reconfigure(vim.vm.ConfigSpec(deviceChange=added)))


def turn_template_into_vm(sandbox: Running) -> None:
    """Somebody deletes the VM, and turns its template into a VM."""
    with administrator(sandbox) as si:
        there = paths(si)
        made = next(there[path] for path in ("/dc/vm/sckubw01", "/dc/vm/desk") if path in there)
        WaitForTask(made.PowerOff())
        WaitForTask(made.Destroy())
        there["/dc/vm/centos-7.6"].MarkAsVirtualMachine(there["/dc/host/farm/Resources"])


GONE = 1 << 23  # above every process id


def interrupt_import(sandbox: Running) -> None:
    """Makes a VM look half-imported by a process that has ended."""
    with administrator(sandbox) as si:
        there = paths(si)
        option = vim.option.OptionValue(
            key="bfinfra.importing", value=f"{process.me().rpartition('/')[0]}/{GONE}"
        )
        WaitForTask(
            there.get("/dc/vm/bf-01", there.get("/dc/vm/sckubw01")).Reconfigure(
                vim.vm.ConfigSpec(extraConfig=[option])
            )
        )


def overwrite_secrets(sandbox: Running) -> None:
    """Somebody overwrites the Secrets."""
    kube, home = other(sandbox), "/api/v1/namespaces/default/secrets"
    for each in kube.call("GET", home)["items"]:
        if each["metadata"].get("labels"):
            kube.call(
                "PATCH", f"{home}/{each['metadata']['name']}", {"data": dict.fromkeys(each["data"], "eA==")}
            )


def take_labels_off(sandbox: Running, *lists: str, records: bool = False) -> None:
    """Somebody takes the site's label off all objects of these lists in the cluster `other`, of records only if asked."""
    kube = other(sandbox)
    for path in lists:
        for each in kube.call("GET", path)["items"]:
            meta = each["metadata"]
            if SITE not in (meta.get("labels") or {}) or (meta["name"].startswith("bfinfra") and not records):
                continue
            start, _, plural = path.rpartition("/")
            space = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
            kube.call(
                "PATCH", f"{start}{space}/{plural}/{meta['name']}", {"metadata": {"labels": {SITE: None}}}
            )

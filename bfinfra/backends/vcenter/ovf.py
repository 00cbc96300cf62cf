"""Imports an OVF: the import spec, the lease, the upload with constant memory, and an end that is either
complete or undone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import httpx2
from pyVmomi import vim

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import faults, properties, refs
from bfinfra.backends.vcenter.certificates import HostTrust
from bfinfra.backends.vcenter.devices import give_mac
from bfinfra.backends.vcenter.hardware import extend
from bfinfra.backends.vcenter.keepalive import KeepAlive
from bfinfra.backends.vcenter.names import sent
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.vcenter.tasks import Tasks
from bfinfra.backends.vcenter.upload import Report, Upload
from bfinfra.backends.vcenter.vm import Hardware, Import
from bfinfra.backends.words import safe
from bfinfra.model.errors import Busy, Exists, Rejected, RemoteError, Unanswered, Unreachable

LEASE = ("state", "error", "info")
SAYS = {"ready": "info", "error": "error"}  # further parts of a lease, read with its state
GETTING_READY = 600  # seconds that a lease may take to become ready


class Imports:
    """Imports OVFs."""

    def __init__(
        self, session: SoapSession, tasks: Tasks, transport: Transport, authorities: Callable[[], str]
    ) -> None:
        self._session = session
        self._tasks = tasks
        self._transport = transport
        self._hosts = HostTrust(session, transport, authorities)

    def run(self, wanted: Import, report: Report) -> str:
        """Import and return the VM's id. `report` gets bytes sent and bytes in all. After an error nothing is
        left of the VM.

        Hardware that the server refuses at import is left out, except the mark: the caller reconfigures the
        rest.
        """
        try:
            ready = self._lease(wanted)
        except Rejected:
            bare = replace(
                wanted,
                hardware=Hardware(extra=wanted.hardware.extra, instance_uuid=wanted.hardware.instance_uuid),
            )
            if bare.hardware == wanted.hardware:
                raise
            ready = self._lease(bare)
        return self._upload(*ready, wanted, report)

    def _lease(self, wanted: Import) -> tuple[Any, Any, list[Any]]:
        """A ready lease, its contents, and the files that it requests. Raises RemoteError: then there is no
        lease and no VM.
        """
        spec, items = self._spec(wanted)

        def take(content: vim.ServiceInstanceContent) -> Any:
            _fit_adapters(spec.configSpec, wanted)
            extend(
                spec.configSpec, wanted.hardware, content, refs.refer(content, vim.HostSystem, wanted.host)
            )
            pool, folder = (
                refs.refer(content, vim.ResourcePool, wanted.pool),
                refs.refer(content, vim.Folder, wanted.folder),
            )
            self._not_there(content, folder, wanted.name)
            return pool.ImportVApp(spec, folder, refs.refer(content, vim.HostSystem, wanted.host))

        lease = self._session.write(take)
        try:
            reported = self._tasks.watch(
                lease,
                LEASE,
                lambda v: v.get("state") not in (None, "initializing"),
                "the import",
                limit=GETTING_READY,
            )
            if not reported.get(SAYS.get(reported["state"], "state")):  # the state came before the rest
                reported = self._session.read(lambda content: properties.one(content, lease, LEASE)).values
        except BaseException:
            _abort(lease)
            raise
        if reported["state"] != "ready":
            raise faults.of_fault(
                reported.get("error"), f"vCenter refused the import of {wanted.name}", self._session.server
            )
        return lease, reported["info"], items

    def _not_there(self, content: Any, folder: Any, name: str) -> None:
        """Raises Exists if a VM of the name is in the folder, or is being imported. Otherwise a server may
        make a folder on the datastore before it refuses the name.
        """
        if found := content.searchIndex.FindChild(folder, sent(name)):
            raise Exists(
                f"vCenter has a VM {name} in this folder already",
                server=self._session.server,
                why=f"somebody else made {safe(refs.moid(found))}, or imports it right now",
            )

    def _spec(self, wanted: Import) -> tuple[Any, list[Any]]:
        def create(content: Any) -> Any:
            networks = [
                vim.OvfManager.NetworkMapping(
                    name=name, network=refs.refer(content, _network_type(ident), ident)
                )
                for name, ident in sorted(wanted.networks.items())
            ]
            params = vim.OvfManager.CreateImportSpecParams(
                locale="US",
                deploymentOption="",
                entityName=sent(wanted.name),
                hostSystem=refs.refer(content, vim.HostSystem, wanted.host),
                networkMapping=networks,
                propertyMapping=[
                    vim.KeyValue(key=key, value=value) for key, value in sorted(wanted.properties.items())
                ],
                diskProvisioning="thin" if wanted.thin else "thick",
            )
            pool, store = (
                refs.refer(content, vim.ResourcePool, wanted.pool),
                refs.refer(content, vim.Datastore, wanted.datastore),
            )
            return content.ovfManager.CreateImportSpec(wanted.descriptor, pool, store, params)

        result = self._session.read(create)
        if result.error:
            raise faults.of_fault(
                result.error[0], f"vCenter can't import {wanted.name}", self._session.server
            )
        items = list(result.fileItem or ())
        for item in items:
            item.path = self._held(item.path, wanted.files)
        return result.importSpec, items

    def _held(self, path: str, files: Mapping[str, int]) -> str:
        """The file that vCenter asks for: it may write the name as the descriptor does, with `%20`."""
        for name in (path, path.removeprefix("./"), unquote(path).removeprefix("./")):
            if name in files:
                return name
        raise faults.malformed(
            f"vCenter asks for {safe(path)}, which the OVA does not list", self._session.server, "fileItem"
        )

    def _upload(self, lease: Any, info: Any, items: list[Any], wanted: Import, report: Report) -> str:
        try:
            urls = [_url(info, item, self._session.server) for item in items]
            with KeepAlive(lease.HttpNfcLeaseProgress, info.leaseTimeout) as alive:
                Upload(self._transport, lambda url: self._hosts.of(url, wanted.host), alive, report).run(
                    items, urls, wanted.files, wanted.open
                )
            with contextlib.suppress(
                Busy, Unanswered, Unreachable
            ):  # only for people; the end shows whether the lease still exists
                lease.HttpNfcLeaseProgress(100)
            self._complete(lease)
        except RemoteError as error:
            why = self._ended(lease)
            _abort(lease)
            if why is None:
                raise
            raise faults.of_fault(
                why, f"vCenter ended the import of {wanted.name}", self._session.server
            ) from error
        except BaseException:
            _abort(lease)
            raise
        return refs.moid(info.entity)

    def _ended(self, lease: vim.HttpNfcLease) -> object:
        """The fault that ended the lease; None if it is open, or can't be read."""
        try:
            row = self._session.read(lambda content: properties.one(content, lease, ["state", "error"]))
        except RemoteError:
            return None
        return row["error"] if row["state"] == "error" else None

    def _complete(self, lease: Any) -> None:
        """Complete the import. If the answer is lost, the lease is read: nothing that is complete is sent
        again.
        """
        try:
            lease.HttpNfcLeaseComplete()
        except Unanswered:
            if (
                self._session.read(lambda content: properties.one(content, lease, ["state"]))["state"]
                != "done"
            ):
                raise


def _fit_adapters(spec: Any, wanted: Import) -> None:
    """Leave out the adapters that are surplus, and give the others their MAC addresses."""
    cards = [c for c in spec.deviceChange or () if isinstance(c.device, vim.vm.device.VirtualEthernetCard)]
    out = [card for index, card in enumerate(cards) if index in wanted.surplus]
    for index, card in enumerate(cards):
        give_mac(card.device, wanted.macs.get(index, ""))
    spec.deviceChange = [c for c in spec.deviceChange or () if not any(c is o for o in out)]


def _network_type(ident: str) -> type[Any]:
    return vim.dvs.DistributedVirtualPortgroup if ident.startswith("dvportgroup") else vim.Network


def _url(info: Any, item: Any, server: str) -> httpx2.URL:
    """The address for a file; `*` in it means the server itself."""
    found = next((d.url for d in info.deviceUrl or () if d.importKey == item.deviceId), None)
    if found is None:
        raise faults.malformed(f"the lease offers no address for {safe(item.path)}", server, "deviceUrl")
    home = httpx2.URL(f"https://{server}")
    url = httpx2.URL(found.replace("://*", f"://{home.host}", 1))
    return url.copy_with(port=home.port) if "://*/" in found else url


def _abort(lease: Any) -> None:
    with contextlib.suppress(RemoteError):  # then it times out on the server
        lease.HttpNfcLeaseAbort(None)

"""A content library as a store of appliances by their digest: what is stored is never uploaded again. Source:
com.vmware.content, com.vmware.vcenter.ovf.

All requests go to vCenter's own port, none to a host.
"""

from __future__ import annotations

import contextlib
import re
import threading
from types import SimpleNamespace
from typing import Any

import httpx2

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import faults
from bfinfra.backends.vcenter.content import OURS
from bfinfra.backends.vcenter.keepalive import KeepAlive
from bfinfra.backends.vcenter.rest import Rest
from bfinfra.backends.vcenter.upload import UPLOADING, Report, Upload
from bfinfra.backends.vcenter.vm import Appliance, Deployment
from bfinfra.backends.words import safe
from bfinfra.model import process, waits
from bfinfra.model.errors import Busy, Malformed, Missing, Rejected, RemoteError, Unanswered
from bfinfra.model.site import VCenterSettings
from bfinfra.model.waits import Wait

ITEMS = "/api/content/library/item"
SESSIONS = "/api/content/library/item/update-session"
VERSION = re.compile(r"; content version (\S+);")
IDLE = 300  # the shortest time in seconds after which an update session expires without a keep-alive
STORING = 1800.0  # seconds that a library may take to store an upload
LONGEST = 5.0  # seconds between two checks of that
DEPLOYING = 7200.0  # seconds of a deployment: the answer comes after all disks are copied
ALGORITHMS = ("SHA1", "SHA256", "SHA512")
EXTRA = {"@class": "com.vmware.vcenter.ovf.extra_config_params", "type": "ExtraConfigParams"}


class Libraries:
    """The libraries of one vCenter. Raises RemoteError."""

    def __init__(self, rest: Rest, transport: Transport, settings: VCenterSettings) -> None:
        self._rest, self._transport, self._settings = rest, transport, settings
        self._lock = threading.Lock()

    def store(self, library: str, datastore: str, appliance: Appliance, report: Report) -> str:
        """The id of the item with the appliance, which is uploaded if it is missing. `datastore`: id of the
        datastore for a new library.

        Raises Busy if another process is storing it. Threads of one process wait for each other.
        """
        with waits.held(self._lock, "another upload of this run into a library", UPLOADING):
            home = self._library(library, datastore)
            found = self._rest.post(
                ITEMS, {"library_id": home, "name": appliance.name}, params={"action": "find"}
            )
            item = str(found[0]) if found else self._make(home, appliance)
            if not self._whole(item, appliance):
                who = self._take_over(item, appliance)
                if not self._whole(item, appliance):  # another process may have stored it just now
                    self._claim(item, appliance, who)
                    self._fill(item, appliance, report)
            return item

    def deploy(self, item: str, wanted: Deployment) -> str:
        """The id of a VM made from the OVF item, with its notes, and no other change of its hardware."""
        notes = [{"key": key, "value": value} for key, value in sorted(wanted.extra.items())]
        spec = {
            "name": wanted.name,
            "accept_all_EULA": True,
            "default_datastore_id": wanted.datastore,
            **({"network_mappings": dict(wanted.networks)} if wanted.networks else {}),
            "storage_provisioning": "thin" if wanted.thin else "thick",
            "additional_parameters": [{**EXTRA, "extra_configs": notes}],
        }
        target = {
            "resource_pool_id": wanted.pool,
            "folder_id": wanted.folder,
            **({"host_id": wanted.host} if wanted.host else {}),
        }
        wait = Wait(f"the deployment of {wanted.name}", DEPLOYING, server=self._rest.server)
        try:
            answer = self._rest.post(
                f"/api/vcenter/ovf/library-item/{item}",
                {"target": target, "deployment_spec": spec},
                params={"action": "deploy"},
                timeout=DEPLOYING,
            )
        except Unanswered as error:
            wait.check(str(error.problems[0].why))
            raise
        try:
            if answer["succeeded"]:
                return str(answer["resource_id"]["id"])
            words = [
                str(m.get("default_message", ""))
                for e in answer["error"]["errors"]
                for m in (e.get("error") or {}).get("messages", [e.get("message") or {}])
            ]
        except (KeyError, TypeError, AttributeError):
            raise faults.malformed(
                "the answer to a deployment from a library can't be read",
                self._rest.server,
                "no resource and no error",
            ) from None
        raise Rejected(
            f"vCenter can't deploy {wanted.name} from the library",
            server=self._rest.server,
            why=safe("; ".join(filter(None, words))),
        )

    def _library(self, name: str, datastore: str) -> str:
        if found := self._rest.post(
            "/api/content/library", {"name": name, "type": "LOCAL"}, params={"action": "find"}
        ):
            return str(found[0])
        spec = {
            "name": name,
            "type": "LOCAL",
            "description": OURS,
            "storage_backings": [{"type": "DATASTORE", "datastore_id": datastore}],
        }
        return str(self._rest.post("/api/content/local-library", spec))

    def _make(self, library: str, appliance: Appliance) -> str:
        return str(
            self._rest.post(
                ITEMS,
                {
                    "library_id": library,
                    "name": appliance.name,
                    "type": "ovf",
                    "description": _note(appliance),
                },
            )
        )

    def _whole(self, item: str, appliance: Appliance) -> bool:
        """Return whether the item contains exactly these files as they were stored. Raises Rejected if it
        contains others: it was changed.
        """
        held = {each["name"]: each for each in self._rest.get(f"{ITEMS}/{item}/file")}
        if not held:
            return False
        info = self._rest.get(f"{ITEMS}/{item}")
        noted, version = (
            VERSION.search(str(info.get("description", ""))),
            str(info.get("content_version", "")),
        )
        if noted and noted[1] != version:  # a server need not give the digests of its files
            raise self._changed(
                appliance, f"its content is of version {safe(version)}, stored was {noted[1]}"
            )
        for name, size in appliance.files.items():
            checksum = held.get(name, {}).get("checksum_info") or {}
            algorithm, wanted = appliance.digests.get(name, ("", ""))
            other = checksum.get("algorithm") == algorithm and checksum.get("checksum", "").lower() != wanted
            if name not in held or held[name].get("size") != size or other:
                raise self._changed(appliance, f"{safe(name)} is missing or another one")
        return True

    def _changed(self, appliance: Appliance, why: str) -> Rejected:
        return Rejected(
            f"the library's item {appliance.name} does not hold that appliance",
            server=self._rest.server,
            why=why,
            next="delete the item; the next apply stores it again",
        )

    def _fill(self, item: str, appliance: Appliance, report: Report) -> None:
        session = str(self._rest.post(SESSIONS, {"library_item_id": item}))
        try:
            self._send(session, appliance, report)
            self._rest.post(f"{SESSIONS}/{session}", params={"action": "complete"})
            self._settled(session)
        except BaseException:
            self._drop(session)
            raise
        if not self._whole(item, appliance):
            raise Malformed(
                f"the library's item {appliance.name} is empty",
                server=self._rest.server,
                why="the upload ended well",
            )
        version = str(self._rest.get(f"{ITEMS}/{item}").get("content_version", ""))
        self._rest.patch(f"{ITEMS}/{item}", {"description": _note(appliance, version)})

    def _take_over(self, item: str, appliance: Appliance) -> str:
        """End what a dead process left open. Returns the process that last began to store the item. Raises
        Busy if a process is at work.
        """
        who = str(self._rest.get(f"{ITEMS}/{item}").get("description", "")).rpartition(" ")[2]
        for session in self._rest.get(SESSIONS, params={"library_item_id": item}):
            if self._rest.get(f"{SESSIONS}/{session}").get("state") == "ACTIVE" and not (
                process.ended(who) or process.mine(who)
            ):
                raise Busy(
                    f"{appliance.title} is being stored in the library",
                    server=self._rest.server,
                    why=f"by {safe(who)}",
                    retry_after=LONGEST,
                )
            self._drop(session)
        return who

    def _claim(self, item: str, appliance: Appliance, who: str) -> None:
        """Note this process as the one that stores the item."""
        if not process.mine(who):
            self._rest.patch(f"{ITEMS}/{item}", {"description": _note(appliance)})

    def _send(self, session: str, appliance: Appliance, report: Report) -> None:
        urls = []
        for name, size in appliance.files.items():
            spec: dict[str, Any] = {"name": name, "source_type": "PUSH", "size": size}
            algorithm, digest = appliance.digests.get(name, ("", ""))
            if algorithm in ALGORITHMS:
                spec["checksum_info"] = {"algorithm": algorithm, "checksum": digest}
            urls.append(
                httpx2.URL(self._rest.post(f"{SESSIONS}/{session}/file", spec)["upload_endpoint"]["uri"])
            )
        items = [SimpleNamespace(path=name, create=True) for name in appliance.files]
        home = httpx2.URL(f"https://{self._rest.server}")
        if other := next((url for url in urls if (url.host, url.port) != (home.host, home.port)), None):
            raise faults.malformed(
                "the library asks for an upload to another server", self._rest.server, other.host
            )

        def keep_alive(percent: int) -> None:
            self._rest.post(
                f"{SESSIONS}/{session}", {"client_progress": percent}, params={"action": "keep-alive"}
            )

        with KeepAlive(keep_alive, IDLE) as beat:
            Upload(self._transport, lambda _: self._settings.trust, beat, report, self._rest.headers()).run(
                items, urls, appliance.files, appliance.open
            )

    def _settled(self, session: str) -> None:
        wait = Wait("storing what was uploaded", STORING, server=self._rest.server, longest=LONGEST)
        while True:
            try:
                found = self._rest.get(f"{SESSIONS}/{session}")
            except Missing:
                return  # a finished session may be gone
            if found.get("state") == "DONE":
                self._drop(session)
                return
            if found.get("state") in ("ERROR", "CANCELED"):
                why = (found.get("error_message") or {}).get("default_message", "")
                raise Rejected(
                    "the library refuses what was uploaded", server=self._rest.server, why=safe(why)
                )
            wait.rest()

    def _drop(self, session: str) -> None:
        """Cancel a session. One that can't be cancelled ends by itself on the server."""
        with contextlib.suppress(RemoteError):
            self._rest.post(f"{SESSIONS}/{session}", params={"action": "cancel"})
        with contextlib.suppress(RemoteError):
            self._rest.delete(f"{SESSIONS}/{session}")


def _note(appliance: Appliance, version: str = "") -> str:
    """The note of a complete item, with the version of its content, which every change of its files
    changes.
    """
    return (
        f"{appliance.title}. {OURS}"
        + (f"; content version {version}" if version.isalnum() else "")
        + f"; stored by {process.me()}"
    )

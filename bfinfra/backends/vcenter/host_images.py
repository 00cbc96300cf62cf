"""Images of clusters in vSphere Lifecycle Manager, over REST. Source: com.vmware.esx.settings (vmware-vcenter
8.0.3, 9.0 and 9.1).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.backends.words import safe
from bfinfra.model.errors import Conflict, Exists, Malformed, Missing, Rejected
from bfinfra.model.records import dataclass
from bfinfra.model.waits import Wait

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

OFFLINE = "/api/esx/settings/depots/offline"
CLUSTERS = "/api/esx/settings/clusters"
TASKS = "/api/cis/tasks"
TASK = {"vmw-task": "true"}
HOUR = 3600.0
IN_PROGRESS, IN_STATE = "NOT_ALLOWED_IN_CURRENT_STATE", "ALREADY_IN_DESIRED_STATE"
Components = Mapping[str, str]
"""Name → version."""


@dataclass(frozen=True, slots=True)
class Depot:
    """An offline depot. `location`: the URL that it came from, or ""."""

    id: str
    location: str
    description: str


@dataclass(frozen=True, slots=True)
class HostImage:
    """The software of a host, by the last scan. `status`: COMPLIANT, NON_COMPLIANT, INCOMPATIBLE or
    UNAVAILABLE; `why`: the scan's message.
    """

    status: str
    components: Components = field(default_factory=dict)
    why: tuple[str, ...] = ()


class HostImages:
    """The images of one vCenter's clusters. Raises RemoteError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def depots(self) -> tuple[Depot, ...]:
        """The offline depots; () without vLCM."""
        try:
            found = self._rest.get(OFFLINE)
        except Missing:
            return ()
        return tuple(
            Depot(identity, str(each.get("location") or ""), str(each.get("description") or ""))
            for identity, each in _object(found, self._rest).items()
        )

    def import_depot(self, location: str, description: str) -> None:
        """Let vCenter fetch a depot. One with the same content is fine."""
        body = {"source_type": "PULL", "location": location, "description": description}
        try:
            task = self._rest.post(OFFLINE, body, params=TASK)
            self._finished(task, f"the import of {location}", f"vCenter can't import {location}")
        except Exists:
            return

    def drop_depot(self, identity: str) -> None:
        """Delete a depot. One that is already gone is fine."""
        try:
            task = self._rest.delete(f"{OFFLINE}/{quote(identity)}", params=TASK)
        except Missing:
            return
        self._finished(task, "the deletion of the depot", "the depot can't be deleted")

    def image(self, cluster: str) -> Components | None:
        """The components that were added to a cluster's image; None if the cluster has no image."""
        try:
            found = self._rest.get(f"{CLUSTERS}/{quote(cluster)}/software")
        except Missing:
            return None
        except Rejected as error:
            if _kind(error) in ("UNSUPPORTED", "INVALID_ARGUMENT"):
                return None
            raise
        return _components(_object(found, self._rest).get("components"))

    def hosts(self, cluster: str) -> Mapping[str, HostImage]:
        """Each host by id, by the cluster's last scan; {} if it was never scanned."""
        try:
            found = self._rest.get(f"{CLUSTERS}/{quote(cluster)}/software/compliance")
        except Missing:
            return {}
        hosts = _object(_object(found, self._rest).get("hosts") or {}, self._rest)
        return {moid: _host(each) for moid, each in hosts.items()}

    def commit(self, cluster: str, wanted: Components, unwanted: Iterable[str], why: str) -> None:
        """Change the components of the image: in a draft, which is committed, then scan the hosts.

        A draft that an earlier run of this account left is used again. Raises Conflict if the draft has
        changes of somebody else.
        """
        draft = self._draft(cluster, wanted, sorted(unwanted))
        gone = sorted({*unwanted} & {*self._of_draft(cluster, draft)})
        self._rest.patch(
            f"{CLUSTERS}/{quote(cluster)}/software/drafts/{quote(draft)}/software/components",
            {"components_to_set": dict(wanted), "components_to_delete": gone},
        )
        task = self._alone(
            lambda: self._rest.post(
                f"{CLUSTERS}/{quote(cluster)}/software/drafts/{quote(draft)}",
                {"message": why},
                params={"action": "commit", **TASK},
            ),
            "the image can't be changed",
        )
        self._finished(task, "the change of the image", "the image can't be changed")
        task = self._alone(
            lambda: self._rest.post(
                f"{CLUSTERS}/{quote(cluster)}/software", params={"action": "scan", **TASK}
            ),
            "the hosts can't be scanned",
        )
        self._finished(task, "the scan of the hosts", "the hosts can't be scanned")

    def discard(self, cluster: str, components: Collection[str]) -> None:
        """Discard the drafts of this account that differ from the image in these components only, which a
        run has left.
        """
        image = self.image(cluster) or {}
        kept = {name: version for name, version in image.items() if name not in components}
        for draft in self._own_drafts(cluster):
            found = self._of_draft(cluster, draft)
            if {name: version for name, version in found.items() if name not in components} == kept:
                with contextlib.suppress(Missing):
                    self._rest.delete(f"{CLUSTERS}/{quote(cluster)}/software/drafts/{quote(draft)}")

    def check(self, cluster: str, hosts: Sequence[str]) -> tuple[str, ...]:
        """Return the reasons that prevent the remediation of these hosts, in vCenter's words."""
        task = self._alone(
            lambda: self._rest.post(
                f"{CLUSTERS}/{quote(cluster)}/software",
                {"hosts": list(hosts)},
                params={"action": "check", **TASK},
            ),
            "the hosts can't be checked",
        )
        found = self._finished(task, "the check of the hosts", "the hosts can't be checked")
        return tuple(_issues(_object(found, self._rest)))

    def apply(self, cluster: str, hosts: Sequence[str], *, eula: bool) -> None:
        """Remediate hosts, and wait for it. While another remediation runs it waits for that one; hosts that
        are in the desired state are fine. Raises Rejected with vCenter's reasons.
        """
        try:
            task = self._alone(
                lambda: self._rest.post(
                    f"{CLUSTERS}/{quote(cluster)}/software",
                    {"hosts": list(hosts), "accept_eula": eula},
                    params={"action": "apply", **TASK},
                ),
                "the hosts can't be remediated",
            )
        except Rejected as error:
            if _kind(error) == IN_STATE:
                return
            raise
        ended = self._finished(task, "the remediation", "the hosts can't be remediated")
        found = _object(ended or {}, self._rest)
        if failed := found.get("failed_hosts"):
            status = found.get("host_status") or {}
            words = [
                word for each in failed for word in _words((status.get(each) or {}).get("notifications"))
            ]
            raise Rejected(
                f"{len(failed)} of {len(hosts)} hosts could not be remediated",
                server=self._rest.server,
                why="; ".join(words) or "vCenter gives no reason",
            )

    def _draft(self, cluster: str, wanted: Components, unwanted: Sequence[str]) -> str:
        """A draft: a new one, or the one that this account has left."""
        try:
            return str(self._rest.post(f"{CLUSTERS}/{quote(cluster)}/software/drafts"))
        except Exists:
            pass
        image = self.image(cluster) or {}
        kept = {name: version for name, version in image.items() if name not in {*wanted, *unwanted}}
        listed = self._own_drafts(cluster)
        for draft in listed:
            found = self._of_draft(cluster, draft)
            ours = {name: version for name, version in found.items() if name not in {*wanted, *unwanted}}
            touched = {name: found[name] for name in wanted if name in found}
            if ours == kept and all(version in (wanted[n], image.get(n)) for n, version in touched.items()):
                return draft
        raise Conflict(
            "this account has started other changes of the image",
            server=self._rest.server,
            why=f"there are {len(listed)} drafts, and none has only this site's changes",
            next="commit or discard them in vCenter (Updates, Image), then run this again",
        )

    def _own_drafts(self, cluster: str) -> list[str]:
        """The drafts of this account."""
        listed = _object(self._rest.get(f"{CLUSTERS}/{quote(cluster)}/software/drafts"), self._rest)
        return [
            draft
            for draft, each in listed.items()
            if _account(str((each.get("metadata") or {}).get("owner") or "")) == _account(self._rest.account)
        ]

    def _of_draft(self, cluster: str, draft: str) -> Components:
        info = self._rest.get(f"{CLUSTERS}/{quote(cluster)}/software/drafts/{quote(draft)}")
        return _components((_object(info, self._rest).get("software") or {}).get("components"))

    def _alone(self, ask: Callable[[], Any], what: str) -> Any:
        """The answer; waits while another operation on the image is in progress."""
        wait = Wait("another operation on the image of the cluster", HOUR, server=self._rest.server)
        while True:
            try:
                return ask()
            except Rejected as error:
                if _kind(error) != IN_PROGRESS:
                    raise
                why = f"{what}: {error.problems[0].why}"
            wait.rest(why=why)

    def _finished(self, task: object, what: str, failed: str) -> Any:
        """The result of a task. Raises Rejected if it failed: then `failed` is so."""
        wait = Wait(what, 4 * HOUR, server=self._rest.server)
        while True:
            found = _object(self._rest.get(f"{TASKS}/{quote(str(task))}"), self._rest)
            if found.get("status") == "SUCCEEDED":
                return found.get("result")
            if found.get("status") == "FAILED":
                raise Rejected(failed, server=self._rest.server, why=_error(found.get("error")))
            wait.rest(why=f"vCenter says {safe(found.get('status') or 'nothing')} of its task")


def _account(name: str) -> str:
    """Return `user@domain` in small letters, also of `DOMAIN` backslash `user`, as vLCM names owners."""
    domain, _, user = name.lower().rpartition("\\")
    return f"{user}@{domain}" if domain else user


def _object(found: object, rest: Rest) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise Malformed("an answer of vLCM can't be understood", server=rest.server, why=type(found).__name__)
    return found


def _components(found: Any) -> dict[str, str]:
    return {name: str((each or {}).get("version") or "") for name, each in sorted((found or {}).items())}


def _host(found: Mapping[str, Any]) -> HostImage:
    rows = found.get("components") or {}
    running = {
        name: str(((each or {}).get("current") or {}).get("version") or "") for name, each in rows.items()
    }
    return HostImage(
        str(found.get("status") or ""),
        {name: version for name, version in running.items() if version},
        tuple(_words(found.get("notifications"))),
    )


def _words(notifications: Any) -> list[str]:
    """The errors and warnings of vLCM."""
    found = notifications or {}
    rows = [*(found.get("errors") or ()), *(found.get("warnings") or ())]
    return [safe((each.get("message") or {}).get("default_message", "")) for each in rows]


def _issues(result: Mapping[str, Any]) -> Iterable[str]:
    """The issues of checks that failed, each once."""
    found: dict[str, None] = {}
    for entity in result.get("entity_results") or ():
        for check in entity.get("check_statuses") or ():
            if check.get("status") in ("ERROR", "TIMEOUT"):
                texts = [each.get("default_message", "") for each in check.get("issues") or ()]
                found |= dict.fromkeys(map(safe, texts or ["a check failed without a word"]))
    return found


def _error(found: Any) -> str:
    rows = (found or {}).get("messages") or ()
    return "; ".join(safe(each.get("default_message", "")) for each in rows) or "vCenter gives no reason"


def _kind(error: Rejected) -> str:
    """The type of the error, which ends its reason."""
    return str(error.problems[0].why or "").rpartition(" ")[2].rstrip(")")

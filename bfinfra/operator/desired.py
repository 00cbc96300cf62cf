"""A Site as the cluster has it, parsed: the desired state, the interval and the approval."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from bfinfra.model.records import dataclass
from bfinfra.operator.approval import DIGITS, Approval
from bfinfra.operator.crd import INTERVAL
from bfinfra.operator.watching import Watching

APPROVE = "bfinfra.io/approve"
FINALIZER = "bfinfra.io/destroy"
UNITS = {"m": 60, "h": 3600, "d": 86400}
SHORTEST, LONGEST = 60, 7 * 86400  # seconds


@dataclass(frozen=True)
class Desired:
    """One Site object. `watch`: a watcher is to follow it; `watched`: one does, as the operator sees it;
    `approve`: the digest in its annotation; `size`: bytes of the site as JSON; `status` as in the cluster.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    site: Mapping[str, Any] = field(repr=False)
    interval: int = 3600
    approval: Approval = Approval.DISRUPTIVE
    destroys: bool = True
    suspend: bool = False
    watch: bool = False
    watched: bool = False
    claim: str = ""
    env: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    approve: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    version: str = ""
    size: int = 0
    created: str = ""
    status: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Desired:
        """The Site of this object. What the definition checks is not checked again."""
        meta, spec = body["metadata"], body.get("spec") or {}
        found = re.fullmatch(INTERVAL, str(spec.get("interval", "1h")))
        seconds = int(found[1]) * UNITS[found[2]] if found else 3600
        approve = str((meta.get("annotations") or {}).get(APPROVE, ""))
        return cls(
            meta.get("namespace", ""),
            meta["name"],
            meta["uid"],
            int(meta.get("generation", 0)),
            spec.get("site") or {},
            min(max(seconds, SHORTEST), LONGEST),
            Approval(spec.get("approval", Approval.DISRUPTIVE)),
            spec.get("deletion", "Destroy") == "Destroy",
            bool(spec.get("suspend")),
            bool(spec.get("watch")),
            False,
            str(spec.get("claim") or ""),
            spec.get("env") or {},
            spec.get("files") or {},
            approve if re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", approve) else "",
            "deletionTimestamp" in meta,
            tuple(meta.get("finalizers") or ()),
            str(meta.get("resourceVersion", "")),
            len(json.dumps(spec.get("site"), ensure_ascii=False).encode()),
            str(meta.get("creationTimestamp", "")),
            body.get("status") or {},
        )

    @property
    def approved(self) -> str:
        """The approved digest if it is the waiting plan's, else "": an approval is for one plan only."""
        return (
            self.approve
            if self.approve and self.approve == (self.status.get("plan") or {}).get("digest")
            else ""
        )

    @property
    def key(self) -> str:
        """The identity of a Job's work. It changes when something makes a new check useful."""
        return hashlib.sha256(
            f"{self.uid} {self.generation} {self.approved} {self.deleting}".encode()
        ).hexdigest()[:12]

    @property
    def called(self) -> str:
        """The site's own name, which never changes."""
        return str(self.site.get("site", ""))

    @property
    def watchable(self) -> bool:
        """Whether a watcher may take it: the operator has accepted it, and it is neither suspended nor
        deleted.
        """
        return self.watch and not self.suspend and not self.deleting and FINALIZER in self.finalizers

    @functools.cached_property
    def watching(self) -> Watching:
        """What its watcher reports. A watcher looks at that of each Site several times a turn."""
        return Watching.of(self.status)

    @property
    def trigger(self) -> str:
        """The watcher's report that a Job has to answer; "" if there is none."""
        found = self.watching
        if (
            not self.watched
            or found.generation != self.generation
            or (self.existed and not found.differences)
        ):
            return ""
        return found.changed

    def condition(self, kind: str) -> Mapping[str, Any]:
        """One of the status's conditions; {} if it is missing."""
        return next((each for each in self.status.get("conditions") or () if each.get("type") == kind), {})

    @property
    def existed(self) -> bool:
        """True if everything existed at the last check of this spec."""
        ready = self.condition("Ready")
        return ready.get("status") == "True" and ready.get("observedGeneration") == self.generation

    @property
    def known(self) -> tuple[str, ...]:
        """Identities of the drift that the last check found."""
        return tuple(
            f"{each.get('address', '')} {each.get('field', '')} {each.get('cause', '')}"
            for each in (self.status.get("drift") or {}).get("found") or ()
        )


def taken(wanted: Desired, rivals: Iterable[Desired]) -> str:
    """Return why this Site can't have its name, or "": of two Sites with the same name, each would take the
    other's objects.
    """
    first = min(((each.created, each.uid, each) for each in rivals), default=None, key=lambda each: each[:2])
    if first and first[:2] < (wanted.created, wanted.uid):
        return (
            f"the Site {first[2].namespace}/{first[2].name} has the name {wanted.called} too; write another "
            "name under site:"
        )
    return ""

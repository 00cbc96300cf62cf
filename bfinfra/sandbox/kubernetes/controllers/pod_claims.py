"""The scheduler's part in resource claims: which claims a pod has, on which nodes they can be met, and the
allocation that it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bfinfra.sandbox.kubernetes.allocation import Allocator, taken
from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, stamp, uid_of
from bfinfra.sandbox.kubernetes.store import Key

GROUP = "resource.k8s.io"
CLAIMS: Key = (GROUP, "resourceclaims")
CLASSES: Key = (GROUP, "deviceclasses")
SLICES: Key = (GROUP, "resourceslices")
PROTECTED = "resource.kubernetes.io/delete-protection"
SCHEDULER = "kube-scheduler"
MOST_USERS = 256
"""How many pods can share a claim."""


def names_of(pod: Object) -> dict[str, str]:
    """The claims of a pod, by the pod's names for them; "" for one that is not made yet."""
    made = {
        each["name"]: each.get("resourceClaimName", "")
        for each in dig(pod, "status", "resourceClaimStatuses", default=[])
    }
    return {
        each["name"]: each.get("resourceClaimName") or made.get(each["name"], "")
        for each in dig(pod, "spec", "resourceClaims", default=[])
    }


def of_pod(cluster: Cluster, pod: Object) -> list[Object] | None:
    """The claims of a pod; None while one is not there, is going, or is another pod's own."""
    found = []
    for each in dig(pod, "spec", "resourceClaims", default=[]):
        claim = cluster.get(*CLAIMS, names_of(pod)[each["name"]], namespace_of(pod))
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            return None
        if each.get("resourceClaimTemplateName") and not owned(claim, pod):
            return None
        found.append(claim)
    return found


def owned(claim: Object, pod: Object) -> bool:
    """Return whether a claim was made for a pod."""
    owners = claim["metadata"].get("ownerReferences") or []
    return any(each.get("controller") and each["uid"] == uid_of(pod) for each in owners)


def reserved(claim: Object, pod: Object) -> bool:
    """Return whether a pod may use an allocated claim."""
    return any(each["uid"] == uid_of(pod) for each in dig(claim, "status", "reservedFor", default=[]))


def devices(cluster: Cluster, pod: Object, container: Object) -> Iterator[Object]:
    """The results of the claims that a container uses, one a device."""
    known = names_of(pod)
    for used in dig(container, "resources", "claims", default=[]):
        claim = cluster.get(*CLAIMS, known.get(used["name"], ""), namespace_of(pod))
        for each in dig(claim, "status", "allocation", "devices", "results", default=[]):
            if used.get("request") in (None, "", each["request"]):
                yield each


def of_driver(cluster: Cluster, pod: Object, driver: str) -> Iterator[Object]:
    """The devices of a driver that a pod has for itself, by its claims."""
    for name in names_of(pod).values():
        claim = cluster.get(*CLAIMS, name, namespace_of(pod))
        for each in dig(claim, "status", "allocation", "devices", "results", default=[]):
            if each["driver"] == driver and not each.get("adminAccess"):
                yield each


def unprepared(cluster: Cluster, pod: Object, registered: Collection[str], gone: Collection[str]) -> str:
    """Why a kubelet can't prepare a pod's claims, in its words; "" if it can. `registered`: the drivers of
    its node; `gone`: the devices that they publish, and that are not there any more.
    """
    for name in names_of(pod).values():
        claim = cluster.get(*CLAIMS, name, namespace_of(pod))
        if claim is None:
            why = f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
        elif not reserved(claim, pod):
            why = (
                f"pod {name_of(pod)} ({uid_of(pod)}) is not allowed to use ResourceClaim {name} "
                f"({uid_of(claim)})"
            )
        else:
            results = dig(claim, "status", "allocation", "devices", "results", default=[])
            lost = next((each["driver"] for each in results if each["driver"] not in registered), "")
            why = f"ResourceClaim {name}: DRA driver {lost} is not registered" if lost else ""
            if not why and (away := [each["device"] for each in results if each["device"] in gone]):
                why = (
                    f"NodePrepareResources failed for ResourceClaim {name}: unable to create CDI spec file "
                    f"for claim: failed to construct MIG device DeviceNode edits: {away[0]}"
                )
        if why:
            return f"Failed to prepare dynamic resources: prepare dynamic resources: {why}"
    return ""


@dataclass(frozen=True)
class PodClaims:
    """The claims of one pod, as the scheduler sees them in one attempt."""

    cluster: Cluster
    pod: Object
    claims: Sequence[Object]

    def hindrance(self) -> str:
        """Why no node can take the pod, or ""."""
        for claim in self.claims:
            users = dig(claim, "status", "reservedFor", default=[])
            if _allocated(claim) and len(users) >= MOST_USERS and not reserved(claim, self.pod):
                return "resourceclaim in use"
            for request in [] if _allocated(claim) else dig(claim, "spec", "devices", "requests", default=[]):
                wanted = request["exactly"]["deviceClassName"]
                if self.cluster.get(*CLASSES, wanted) is None:
                    return f"request {request['name']}: device class {wanted} does not exist"
        return ""

    def against(self, node: str) -> list[str]:
        """Why a node can't take the pod. Raises SelectorError."""
        if any(_allocated(claim) and not _on(claim, node) for claim in self.claims):
            return ["resourceclaim not available on the node"]
        return [] if self._allocations(node) is not None else ["cannot allocate all claims"]

    def bind(self, node: str) -> None:
        """Write the allocations on a node, and that the pod uses them."""
        pending = [claim for claim in self.claims if not _allocated(claim)]
        new = dict(zip(map(uid_of, pending), self._allocations(node) or (), strict=True))
        user = {"resource": "pods", "name": name_of(self.pod), "uid": uid_of(self.pod)}
        for claim in self.claims:
            status = dict(claim.get("status") or {})
            if uid_of(claim) in new:
                self.cluster.change(claim, _protect, SCHEDULER)
                when = {"allocationTimestamp": stamp(self.cluster.clock.now())}
                status["allocation"] = {**new[uid_of(claim)], **when}
            if not reserved(claim, self.pod):
                status["reservedFor"] = [*(status.get("reservedFor") or []), user]
                self.cluster.set_status(claim, status, SCHEDULER)

    def _allocations(self, node: str) -> list[Object] | None:
        store = self.cluster.store
        pending = [claim for claim in self.claims if not _allocated(claim)]
        if not pending:
            return []
        classes = {name_of(each): each for each in store.all(CLASSES)}
        found = Allocator(classes, store.all(SLICES), taken(store.all(CLAIMS)))
        return found.allocated(pending, node)


def _allocated(claim: Object) -> bool:
    return dig(claim, "status", "allocation") is not None


def _on(claim: Object, node: str) -> bool:
    """Return whether an allocated claim can be used on a node."""
    selector = dig(claim, "status", "allocation", "nodeSelector")
    return selector is None or any(
        node in each["values"]
        for term in selector["nodeSelectorTerms"]
        for each in term.get("matchFields") or []
    )


def _protect(claim: Object) -> None:
    held = claim["metadata"].get("finalizers") or []
    claim["metadata"]["finalizers"] = [*held, *([PROTECTED] if PROTECTED not in held else [])]

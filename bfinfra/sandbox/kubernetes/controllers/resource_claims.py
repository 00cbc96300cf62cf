"""Resource claims: made from templates for pods, and released when no pod uses them any more."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.causes import forbidden_field
from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.pod_claims import CLAIMS, GROUP, PROTECTED, names_of, owned
from bfinfra.sandbox.kubernetes.errors import invalid
from bfinfra.sandbox.kubernetes.objects import Object, copied, dig, name_of, namespace_of, uid_of
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.target import Options, Target

PODS: Key = ("", "pods")
TEMPLATES: Key = (GROUP, "resourceclaimtemplates")
OF_POD = "resource.kubernetes.io/pod-claim-name"
ADMIN = "resource.kubernetes.io/admin-access"
ENDED = ("Succeeded", "Failed")
CONTROLLER = "ResourceClaimController"
LONGEST = 57


class ResourceClaims:
    """The controller of resource claims, and what the API server admits of them."""

    kinds = (PODS, CLAIMS)

    def __init__(self, loop: Loop) -> None:
        self._cluster = loop.cluster
        loop.cluster.validations.append(self._admit)

    def touched(self, change: Change) -> Iterable[Item]:
        """The claims of a pod that changes, and the pods that wait for a template."""
        if change.key == PODS:
            for name in names_of(change.after).values():
                if name:
                    yield (CLAIMS, namespace_of(change.after), name)
        elif change.key == TEMPLATES:
            for pod in self._cluster.store.all(PODS, namespace_of(change.after)):
                if dig(pod, "spec", "resourceClaims"):
                    yield (PODS, namespace_of(pod), name_of(pod))

    def look(self, item: Item, thing: Object | None) -> None:
        """Make the claims of a pod; release a claim."""
        if thing is None:
            return
        if item[0] == CLAIMS:
            self._claim(thing)
        elif dig(thing, "spec", "resourceClaims") and not thing["metadata"].get("deletionTimestamp"):
            self._pod(thing)

    def _pod(self, pod: Object) -> None:
        made = {}
        for each in pod["spec"]["resourceClaims"]:
            if not (wanted := each.get("resourceClaimTemplateName")):
                continue
            live = self._cluster.get(*CLAIMS, names_of(pod)[each["name"]], namespace_of(pod))
            if live is not None and owned(live, pod):
                continue
            template = self._cluster.get(*TEMPLATES, wanted, namespace_of(pod))
            if template is None:
                why = f'resourceclaimtemplate.resource.k8s.io "{wanted}" not found'
                message = f'PodResourceClaim {each["name"]}: resource claim template "{wanted}": {why}'
                self._cluster.event("FailedResourceClaimCreation", message, pod)
                return
            made[each["name"]] = name_of(self._made(pod, each["name"], template))
        if made:
            before = {each["name"]: each for each in dig(pod, "status", "resourceClaimStatuses", default=[])}
            now = before | {name: {"name": name, "resourceClaimName": claim} for name, claim in made.items()}
            status = {**pod["status"], "resourceClaimStatuses": list(now.values())}
            self._cluster.set_status(pod, status, CONTROLLER)

    def _made(self, pod: Object, name: str, template: Object) -> Object:
        """The pod's own claim: one that is there already, or a new one."""
        for each in self._cluster.store.all(CLAIMS, namespace_of(pod)):
            if owned(each, pod) and dig(each, "metadata", "annotations", OF_POD) == name:
                return each
        start = f"{name_of(pod)}-{name}-"
        if len(start) > LONGEST:
            share = LONGEST / len(start)
            start = f"{name_of(pod)[: int(len(name_of(pod)) * share)]}-{name[: int(len(name) * share)]}"
        metadata = dig(template, "spec", "metadata", default={})
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
        return self._cluster.create(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ResourceClaim",
                "metadata": {
                    "generateName": start,
                    "namespace": namespace_of(pod),
                    "labels": metadata.get("labels") or {},
                    "annotations": {**(metadata.get("annotations") or {}), OF_POD: name},
                    "ownerReferences": [{**owner, "controller": True}],
                },
                "spec": copied(template["spec"]["spec"]),
            },
            CONTROLLER,
        )

    def _claim(self, claim: Object) -> None:
        """Take ended pods off a claim. Without users it is released; one that was made for a pod goes with
        it.
        """
        users = dig(claim, "status", "reservedFor", default=[])
        left = [each for each in users if each.get("resource") != "pods" or self._uses(claim, each)]
        going = claim["metadata"].get("deletionTimestamp")
        if len(left) < len(users) or (going and not left and dig(claim, "status", "allocation")):
            status = {key: value for key, value in claim["status"].items() if key != "reservedFor"}
            if left:
                status["reservedFor"] = left
            else:
                status.pop("allocation", None)
            claim = self._cluster.set_status(claim, status, CONTROLLER)
        if not left and not dig(claim, "status", "allocation"):
            if PROTECTED in (claim["metadata"].get("finalizers") or []):
                claim = self._cluster.change(claim, _unprotect, CONTROLLER) or claim
            if not claim["metadata"].get("deletionTimestamp") and self._unneeded(claim):
                self._cluster.remove(claim)

    def _uses(self, claim: Object, user: Object) -> bool:
        pod = self._cluster.get(*PODS, user["name"], namespace_of(claim))
        return pod is not None and uid_of(pod) == user["uid"] and not _done(pod)

    def _unneeded(self, claim: Object) -> bool:
        """Return whether the pod that a claim was made for does not run any more."""
        for owner in claim["metadata"].get("ownerReferences") or []:
            if owner["kind"] == "Pod" and owner.get("controller"):
                pod = self._cluster.get(*PODS, owner["name"], namespace_of(claim))
                return pod is not None and (uid_of(pod) != owner["uid"] or _done(pod))
        return False

    def _admit(self, target: Target, before: Object | None, after: Object, _: Options) -> None:
        """Raises Refused for admin access in a namespace that isn't labelled for it."""
        if target.resource.key not in (CLAIMS, TEMPLATES) or before is not None:
            return
        spec = after["spec"] if target.resource.key == CLAIMS else after["spec"]["spec"]
        space = self._cluster.get("", "namespaces", target.namespace) or {}
        if dig(space, "metadata", "labels", ADMIN) == "true":
            return
        for number, each in enumerate(dig(spec, "devices", "requests", default=[])):
            if dig(each, "exactly", "adminAccess"):
                why = (
                    f"admin access to devices requires the `{ADMIN}: true` label on the containing namespace"
                )
                cause = forbidden_field(f"spec.devices.requests[{number}].adminAccess", why)
                raise invalid(target.resource.kind, GROUP, name_of(after), [cause])


def _done(pod: Object) -> bool:
    """Return whether a pod runs no more, or never will."""
    never = pod["metadata"].get("deletionTimestamp") and not dig(pod, "spec", "nodeName")
    return bool(never) or dig(pod, "status", "phase") in ENDED


def _unprotect(claim: Object) -> None:
    held = claim["metadata"].get("finalizers") or []
    claim["metadata"]["finalizers"] = [each for each in held if each != PROTECTED]

"""Volume claims. A claim is bound to a new volume if its storage class exists, and kept while a pod uses
it.
"""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, uid_of
from bfinfra.sandbox.kubernetes.pods import claims_of
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.target import Options, Target

CLAIMS: Key = ("", "persistentvolumeclaims")
PODS: Key = ("", "pods")
CLASSES: Key = ("storage.k8s.io", "storageclasses")
PROTECTION = "kubernetes.io/pvc-protection"


class Claims:
    """The volume controller and its protection finalizer."""

    kinds = (CLAIMS,)

    def __init__(self, loop: Loop) -> None:
        self._loop, self._cluster = loop, loop.cluster
        loop.cluster.admissions.append(self._protect)

    def touched(self, change: Change) -> Iterable[Item]:
        """The claims that may wait for a storage class, or for the end of a pod."""
        store = self._cluster.store
        if change.key == CLASSES:
            for each in store.all(CLAIMS):
                yield (CLAIMS, namespace_of(each), name_of(each))
        elif change.key == PODS:
            for name in claims_of(change.after):
                yield (CLAIMS, namespace_of(change.after), name)

    def look(self, item: Item, thing: Object | None) -> None:
        """Bind the claim, or finish its deletion."""
        if thing is None:
            return
        if thing["metadata"].get("deletionTimestamp"):
            self._let_go(thing)
        elif dig(thing, "status", "phase") != "Bound" and self._class(thing):
            self._loop.once(("bind", uid_of(thing)), "volume", lambda: self._bind(item, uid_of(thing)))

    def _class(self, claim: Object) -> Object | None:
        name = dig(claim, "spec", "storageClassName")
        for each in self._cluster.store.all(CLASSES):
            default = (
                dig(each, "metadata", "annotations", "storageclass.kubernetes.io/is-default-class") == "true"
            )
            if name_of(each) == name or (name is None and default):
                return each
        return None

    def _bind(self, item: Item, uid: str) -> None:
        claim = self._cluster.store.get(*item)
        storage = claim and self._class(claim)
        if claim is None or storage is None or uid_of(claim) != uid:
            return
        volume, size = f"pvc-{uid}", dig(claim, "spec", "resources", "requests", "storage")
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": item[1],
            "name": item[2],
            "uid": uid,
        }
        self._cluster.ensure(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": volume},
                "spec": {
                    "capacity": {"storage": size},
                    "accessModes": claim["spec"]["accessModes"],
                    "claimRef": reference,
                    "persistentVolumeReclaimPolicy": storage.get("reclaimPolicy", "Delete"),
                    "storageClassName": name_of(storage),
                    "volumeMode": "Filesystem",
                    "csi": {"driver": storage["provisioner"], "volumeHandle": volume},
                },
                "status": {"phase": "Bound"},
            }
        )
        bound = (
            self._cluster.change(claim, lambda live: live["spec"].__setitem__("volumeName", volume)) or claim
        )
        self._cluster.set_status(
            bound,
            {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": {"storage": size}},
        )

    def _let_go(self, claim: Object) -> None:
        namespace, name = namespace_of(claim), name_of(claim)
        ended = ("Succeeded", "Failed")
        pods = [
            pod
            for pod in self._cluster.store.all(PODS, namespace)
            if dig(pod, "status", "phase") not in ended
        ]
        if any(name in claims_of(pod) for pod in pods):
            return
        volume = self._cluster.get("", "persistentvolumes", dig(claim, "spec", "volumeName", default=""))
        finalizers = [each for each in claim["metadata"].get("finalizers") or [] if each != PROTECTION]
        self._cluster.change(claim, lambda live: live["metadata"].__setitem__("finalizers", finalizers))
        if volume:
            self._end_volume(volume)

    def _end_volume(self, volume: Object) -> None:
        if dig(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete":
            self._cluster.remove(volume)
        else:
            self._cluster.set_status(volume, {"phase": "Released"})

    def _protect(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        if (
            target.resource.key == CLAIMS
            and before is None
            and PROTECTION not in after["metadata"].get("finalizers", [])
        ):
            after["metadata"]["finalizers"] = [*after["metadata"].get("finalizers", []), PROTECTION]
        return after


def storage_class(
    name: str, *, provisioner: str = "csi.vsphere.vmware.com", policy: str = "", default: bool = False
) -> Object:
    """A storage class as a vSphere cluster has it."""
    annotations = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **annotations},
        "provisioner": provisioner,
        "parameters": {"storagePolicyID": policy} if policy else {"svStorageClass": name},
        "allowVolumeExpansion": True,
    }

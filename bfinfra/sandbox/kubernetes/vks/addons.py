"""Add-ons of the service's clusters: what is installed where an AddonInstall selects a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.errors import Refused
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, name_of, namespace_of, owned_by, stamp
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.tanzu_shapes import CLUSTER_API
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.vks.offered import ADDON_NAMES, ADDONS, PUBLIC

INSTALLS: Key = (ADDONS, "addoninstalls")
CONFIGS: Key = (ADDONS, "addonconfigs")
ADDED: Key = (ADDONS, "clusteraddons")
MANAGER = "vks-addon-manager"
OF_CLUSTER = "cluster.x-k8s.io/cluster-name"
GOES_ALONG = f"clusteraddon.{ADDONS}/owned-for-deletion"


class Addons:
    """Those of one supervisor."""

    kinds = (INSTALLS,)

    def __init__(self, loop: Loop) -> None:
        self._loop, self._cluster = loop, loop.cluster
        loop.cluster.admissions.append(self._admit)

    def touched(self, change: Change) -> Iterable[Item]:
        """The installs of a namespace whose clusters or settings changed."""
        if change.key in (CLUSTER_API, CONFIGS):
            for each in self._cluster.store.all(INSTALLS, namespace_of(change.after)):
                yield (INSTALLS, namespace_of(each), name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """The add-on of each cluster that an install selects."""
        if thing is None or thing["metadata"].get("deletionTimestamp"):
            return
        addon = str(dig(thing, "spec", "addonRef", "name", default=""))
        for each in dig(thing, "spec", "clusters", default=[]):
            name = str(dig(each, "selector", "matchLabels", OF_CLUSTER, default=""))
            cluster = self._cluster.store.get(CLUSTER_API, item[1], name)
            if cluster is not None:
                self._stand(thing, cluster, addon)

    def _stand(self, install: Object, cluster: Object, addon: str) -> None:
        name = f"{name_of(cluster)}-{addon}"
        conditions = dig(cluster, "status", "v1beta2", "conditions", default=[])
        up = any((each["type"], each["status"]) == ("Available", "True") for each in conditions)
        made = self._cluster.ensure(
            {
                "apiVersion": f"{ADDONS}/v1alpha1",
                "kind": "ClusterAddon",
                "metadata": {
                    "name": name,
                    "namespace": namespace_of(install),
                    "ownerReferences": [owned_by(install)],
                },
                "spec": {"clusterName": name_of(cluster), "addonRef": {"name": addon}},
            },
            MANAGER,
        )
        if dig(made, "status", "conditions", 0, "status") != str(up):
            when = stamp(self._cluster.clock.now())
            why = "" if up else f"the cluster {name_of(cluster)} is not available"
            ready = condition("Ready", status=up, when=when, reason="Reconciled", message=why)
            self._cluster.set_status(made, {"conditions": [ready]}, MANAGER)
        config = self._cluster.store.get(CONFIGS, namespace_of(install), name)
        if config is not None and not dig(config, "spec", "clusterName"):
            definition = {"name": f"{addon}.kubernetes.vmware.com.1.0.0", "namespace": PUBLIC}
            own = {"clusterName": name_of(cluster), "addonConfigDefinitionRef": definition}
            self._cluster.change(config, lambda live: live["spec"].update(own), MANAGER)

    def _admit(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        addon = dig(after, "spec", "addonRef", "name")
        if target.resource.key == INSTALLS and not target.subresource and addon not in ADDON_NAMES:
            raise Refused(
                403,
                "Forbidden",
                f'admission webhook "vaddoninstall.{ADDONS}" denied the request: '
                f"Addon {addon!r} not found in {PUBLIC}",
            )
        return after

"""The kind bitfusion_device_plugin: observe, readiness, run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bfinfra.backends.kubernetes.marks import marked
from bfinfra.kinds.cluster.base.kubernetes_objects import ObjectsByName
from bfinfra.kinds.cluster.bitfusion_device_plugin.decide import decide
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import OF_CLUSTER
from bfinfra.kinds.cluster.bitfusion_device_plugin.places import KINDS, planned
from bfinfra.kinds.cluster.bitfusion_device_plugin.readiness import readiness
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import (
    NamespaceFacts,
    Object,
    Place,
    State,
    place_of,
    record_of,
    state_of,
)
from bfinfra.kinds.cluster.bitfusion_device_plugin.steps import (
    HOOKS,
    ROLES,
    Ask,
    Authorize,
    Certify,
    Clear,
    Commit,
    Remove,
    Replace,
    RollOut,
    Write,
    WriteRecord,
)
from bfinfra.kinds.cluster_locator import WHOLE, Cluster, api_of, is_named
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.device_plugin import SYSTEM
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.kind import Report
from bfinfra.model.readiness import Readiness
from bfinfra.model.refs import Key
from bfinfra.model.rights import CLUSTERS as EVERYWHERE
from bfinfra.model.rights import Api, PrivilegePlaces, may
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient, Clusters

RECORD = "bfinfra-device-plugin-"


class BitfusionDevicePlugin(ObjectsByName[Spec, State]):
    """The Bitfusion device plug-in and its webhook in a cluster."""

    document = Document.ON_KUBERNETES
    undescribed = "a plug-in of somebody else has another manifest, and a certificate whose key is secret"
    name, cluster_kinds = "bitfusion_device_plugin", WHOLE
    deadline = 600
    step_types = (WriteRecord, Authorize, Certify, Write, Replace, RollOut, Ask, Remove, Clear, Commit)
    survey_privileges = (may("list", "configmaps", EVERYWHERE),)
    resource_privileges = (
        may("get", "serviceaccounts configmaps services secrets deployments.apps", "webhook"),
        may("get", "daemonsets.apps", "plugin"),
        may("get", "resourcequotas", "quotas"),
        may("get", f"{ROLES} {HOOKS}", "named"),
        may("get", "namespaces", "spaces"),
        may(
            "list",
            "pods",
            "webhook",
            optional="bfinfra doesn't report why a pod of the webhook doesn't start",
        ),
        may(
            "list", "pods", "plugin", optional="bfinfra doesn't report why a pod of the plug-in doesn't start"
        ),
        may("get", "pods/log", "webhook", optional="bfinfra doesn't report why the webhook ends"),
        may("get", "pods/log", "plugin", optional="bfinfra doesn't report why the plug-in ends on a node"),
    )

    def __init__(self, clusters: Clusters, site: Site) -> None:
        super().__init__(clusters, site)
        self._namespaces: dict[str, NamespaceFacts] = {}

    def _facts(self) -> dict[str, NamespaceFacts]:
        """The namespaces of each resource, by name."""
        return dict(self._namespaces)

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """See `decide`."""
        return decide(name, spec, state, context)

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """Its namespaces, and the names of cluster-wide objects."""
        cluster = needs["cluster"]
        webhook, plugin = (
            api_of(cluster, getattr(spec, field), needs.get(field))
            for field in ("namespace", "plugin_namespace")
        )
        quotas = tuple(
            api_of(cluster, each.namespace, needs.get(f"quotas.{number}.namespace"))
            for number, each in enumerate(spec.quotas)
        )
        spaces = dict.fromkeys(
            (
                SYSTEM[0],
                spec.namespace,
                spec.plugin_namespace,
                *spec.namespaces,
                *(each.namespace for each in spec.quotas),
            )
        )
        whole = Api(cluster.key)
        return {
            "webhook": (webhook,),
            "plugin": (plugin,),
            "quotas": quotas,
            "cluster": (whole,),
            "named": (Api(cluster.key, names=OF_CLUSTER),),
            "spaces": (Api(cluster.key, names=tuple(spaces)),),
        }

    def ready(self, spec: Spec, state: State) -> Readiness:
        """Ready by the document's own checks: the plug-in runs on the nodes, they advertise GPUs, and the
        webhook runs.
        """
        return readiness(state, self._clusters.at(state.home))

    def run(self, step: Step, report: Report) -> None:
        """Runs one step. Writes each object in a call of its own, so that a killed run can be continued."""
        match step:
            case WriteRecord(home=Endpoint() as home) | Commit(home=Endpoint() as home):
                self._record(self._clusters.at(home), step)
            case Authorize(home=Endpoint() as home) | Certify(home=Endpoint() as home):
                from bfinfra.kinds.cluster.bitfusion_device_plugin.certify import make  # noqa: PLC0415 - start-up is a feature

                make(self._clusters.at(home), step)
            case Replace(home=Endpoint() as home, manifests=manifests, uids=uids):
                cluster = self._clusters.at(home)
                for manifest, uid in zip(manifests, uids, strict=True):
                    place = place_of(manifest)
                    cluster.delete(
                        place.api_version, place.kind, place.name, place.namespace, preconditions={"uid": uid}
                    )
                    cluster.create(manifest)
            case Write(home=Endpoint() as home, manifests=manifests):
                cluster = self._clusters.at(home)
                for manifest in manifests:
                    if place_of(manifest) in step.existing:
                        cluster.apply(manifest, force=True)  # the plan showed the changes of others
                    else:
                        cluster.create(manifest)
            case Remove(home=home, places=places):
                for place in places:
                    self._remove(self._clusters.at(home), place)
            case _:
                raise AssertionError(step)

    def _record(self, cluster: ClusterClient, step: WriteRecord | Commit) -> None:
        place = step.record
        data = {"places": json.dumps([list(each) for each in step.places])}
        body = marked(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": place.name, "namespace": place.namespace},
                "data": data,
            },
            step.mark,
        )
        if isinstance(step, WriteRecord) and not step.existing:
            cluster.create(body)
        else:
            kept = {key: body["metadata"][key] for key in ("labels", "annotations")}
            cluster.patch("v1", "ConfigMap", place.name, {"metadata": kept, "data": data}, place.namespace)

    def _remove(self, cluster: ClusterClient, place: Place) -> None:
        """Deletes an object, only if it has this site's mark and the version that was read."""
        found = cluster.get(place.api_version, place.kind, place.name, place.namespace)
        if found is not None and self._own_name(found):
            preconditions = {name: str(found["metadata"][name]) for name in ("uid", "resourceVersion")}
            cluster.delete(
                place.api_version, place.kind, place.name, place.namespace, preconditions=preconditions
            )

    def _read(
        self,
        cluster: Cluster,
        wanted: Mapping[str, Spec | None],
        needs: Mapping[Key, ResolvedRef],
        *,
        include_unlisted: bool,
    ) -> dict[str, State]:
        records = [
            obj
            for obj in self._marked(cluster, "v1", "ConfigMap", include_unlisted=include_unlisted)
            if obj["metadata"]["name"].startswith(RECORD)
        ]
        by_name: dict[str, list[Object]] = {}
        for obj in records:
            if name := self._own_name(obj):
                by_name.setdefault(name, []).append(obj)
        here = {
            name: spec for name, spec in wanted.items() if spec and is_named(spec.cluster, cluster.key, WHOLE)
        }
        found = {}
        for name in {**here, **{name: None for name in by_name if include_unlisted or name in wanted}}:
            spec = here.get(name)
            state = self._one(name, spec, by_name.get(name, []), cluster, needs)
            if state is not None:
                found[name] = state
            if spec is not None and (include_unlisted or name not in self._namespaces):
                self._namespaces[name] = self._read_facts(spec, cluster)
        return found

    def _one(
        self,
        name: str,
        spec: Spec | None,
        records: list[Object],
        cluster: Cluster,
        needs: Mapping[Key, ResolvedRef],
    ) -> State | None:
        """The state from the places in its records and its spec. Objects of others count only in wanted
        places.
        """
        wanted = planned(name, spec, needs) if spec else ()
        namespace = (
            wanted[0].namespace if wanted else next((obj["metadata"]["namespace"] for obj in records), "")
        )
        places = dict.fromkeys(
            [
                *wanted,
                *(
                    place
                    for obj in records
                    for place in record_of(obj).places
                    if (place.api_version, place.kind) in KINDS
                ),
            ]
        )
        by_kind: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for place in places:
            by_kind.setdefault((place.api_version, place.kind), []).append((place.namespace, place.name))
        objects = [
            dict(obj)
            for (api, thing), there in by_kind.items()
            for obj in cluster.client.find(api, thing, there)
        ]
        own = [obj for obj in objects if place_of(obj) in wanted or self._own_name(obj)]
        noted = {
            place_of(obj): obj
            for obj in (*records, *(each for each in own if each["metadata"]["name"].startswith(RECORD)))
        }
        rest = [obj for obj in own if place_of(obj) not in noted]
        return state_of(list(noted.values()), rest, cluster, namespace) if noted or rest else None

    def _read_facts(self, spec: Spec, cluster: Cluster) -> NamespaceFacts:
        names = dict.fromkeys(
            (
                SYSTEM[0],
                spec.namespace,
                spec.plugin_namespace,
                *spec.namespaces,
                *(each.namespace for each in spec.quotas),
            )
        )
        found = {name: cluster.client.get("v1", "Namespace", name) for name in names}
        return NamespaceFacts(
            datetime.now(UTC),
            {name: (obj["metadata"].get("labels") or {}) if obj else None for name, obj in found.items()},
        )

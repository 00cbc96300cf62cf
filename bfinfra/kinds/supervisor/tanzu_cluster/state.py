"""The live state of a cluster, for every API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.backends.words import safe
from bfinfra.kinds.cluster_locator import Cluster
from bfinfra.kinds.supervisor.base.guests import READY
from bfinfra.kinds.supervisor.tanzu_cluster.forms import FORMS, Form
from bfinfra.kinds.supervisor.tanzu_cluster.manifest import Fields, Object
from bfinfra.kinds.supervisor.tanzu_cluster.spec import V1ALPHA1, Spec
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

UP = ("running", "updating", "updateFailed")


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """`body`: the object's spec, as `api` writes it. `home`: the API that has the object. `endpoint`: set
    once the cluster runs.
    """

    namespace: Annotated[str, Ref("supervisor_namespace")]
    phase: str
    api: str = V1ALPHA1
    body: Fields
    home: Endpoint
    uid: str = ""
    messages: tuple[str, ...] = ()
    nodes: Mapping[str, str] | None = None
    """Node → its status; None if it isn't known."""
    api_server: str = ""
    endpoint: Endpoint | None = None
    registries: tuple[Annotated[str, Ref("registry")], ...] = ()
    """The registries whose authorities its nodes have. They are deleted after the nodes no longer
    have them.
    """

    def answers_at(self) -> str:
        """Its API."""
        return self.api_server

    @property
    def form(self) -> Form:
        """The API's table of conversions."""
        return FORMS[self.api]

    @property
    def version(self) -> str:
        """The version that it runs or is changing to, in full if known."""
        return self.form.version(self.body)

    def view(self, spec: Spec) -> Object:
        """Its fields as a site writes them."""
        return self.form.view(self.body, next(iter(spec.workers)))

    def sized(self, spec: Spec) -> bool:
        """Return whether its nodes are as many, and of the classes, as the spec says."""
        now = self.view(spec)
        live = {f"workers.{pool}": nodes for pool, nodes in (now.get("workers") or {}).items()}
        live["control_plane"] = now.get("control_plane") or {}
        return all(
            (pool.count, pool.vm_class) == (nodes.get("count"), nodes.get("vm_class"))
            for pool in spec.pools()
            for nodes in (live.get(pool.role) or {},)
        )

    def missing(self, count: int) -> str:
        """Return why it has not finished the last change; "" if it has: `count` nodes are ready and there are
        no others.
        """
        up = count if self.nodes is None else sum(status == READY for status in self.nodes.values())
        if self.phase == "running" and up == count and (self.nodes is None or len(self.nodes) == count):
            return ""
        nodes = "" if self.nodes is None else f", {up} of {count} nodes ready"
        others = sorted({status for status in (self.nodes or {}).values() if " " in status})
        return "; ".join((f"{self.phase or 'accepted'}{nodes}", *others[:2], *self.messages[:2]))


def of(obj: Fields, api: str, cluster: Cluster) -> State:
    """The state in an object."""
    form, status = FORMS[api], obj.get("status") or {}
    phase = "deleting" if obj["metadata"].get("deletionTimestamp") else form.phase(obj)
    name, found = obj["metadata"]["name"], form.address(obj)
    address = f"{found.get('host')}:{found.get('port')}" if found else ""
    endpoint = replace(cluster.endpoint, guest=name) if phase in UP and address else None
    nodes = status.get("nodeStatus")
    mark = mark_of(obj)
    return State(
        mark=mark,
        registries=_registries((mark.applied if mark else None) or {}),
        namespace=cluster.key.name,
        phase=phase,
        going=phase == "deleting",
        api=api,
        body=obj.get("spec") or {},
        home=cluster.endpoint,
        uid=str(obj["metadata"].get("uid", "")),
        messages=_messages(status),
        nodes=dict(nodes) if isinstance(nodes, dict) else None,
        api_server=safe(address, 80),
        endpoint=endpoint,
    )


def _registries(applied: Fields) -> tuple[str, ...]:
    trust = applied.get("trust")
    return tuple(
        str(each["registry"])
        for each in (trust.values() if isinstance(trust, Mapping) else ())
        if isinstance(each, Mapping) and "registry" in each
    )


def _messages(status: Fields) -> tuple[str, ...]:
    """Return why it isn't healthy, from its conditions and add-ons."""
    conditions = [
        c for c in status.get("conditions") or () if isinstance(c, dict) and c.get("status") == "False"
    ]
    found = [
        safe(c.get("message") or c.get("reason"), 200)
        for c in conditions
        if c.get("severity") != "Info" and c.get("type") != "UpdatesAvailable"
    ]
    listed = status.get("addons")
    addons = [a for a in (listed.values() if isinstance(listed, dict) else ()) if isinstance(a, dict)]
    found += [
        f"{safe(a.get('name'), 60)}: {safe(e, 200)}"
        for a in addons
        if (e := a.get("status")) and e not in ("applied", "unmanaged")
    ]
    return tuple(text for text in dict.fromkeys(found) if text)

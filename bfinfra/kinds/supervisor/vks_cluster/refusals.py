"""Refusals before the first write: what a class, its supervisor or the cluster's own networks don't allow.
Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from bfinfra.kinds.supervisor.base import fit, offers
from bfinfra.kinds.supervisor.base.pools import surge_of
from bfinfra.kinds.supervisor.base.variables import wrong
from bfinfra.kinds.supervisor.vks_cluster.catalog import Catalog, ClusterClass, VksClusterFacts, of_release
from bfinfra.kinds.supervisor.vks_cluster.manifest import body
from bfinfra.kinds.supervisor.vks_cluster.spec import OWN_FIELDS, Spec, selector
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.suggest import nearest

NODE_BITS = 24
"""Each node takes a network of this size for its pods."""
PLENTY = 1 << 16
"""The number of nodes for which an IPv6 network is taken to have room."""


def check(spec: Spec, context: PlanContext) -> None:
    """Run all checks. Raises Refusal."""
    facts: VksClusterFacts = context.facts or VksClusterFacts()
    if not facts.api(spec.namespace):
        raise Refusal(
            "its supervisor does not serve clusters with a cluster class",
            field="namespace",
            why="it serves neither cluster.x-k8s.io/v1beta2 nor v1beta1",
            next="write a tanzu_cluster, or update the supervisor",
        )
    offers.check(spec, facts.offers.get(spec.namespace, offers.Offer()), context.needs["namespace"].spec)
    fit.check(spec, context, facts.environment)
    pod_network(spec)
    catalog = facts.catalogs.get(spec.namespace, Catalog())
    version(spec, catalog)
    found = cluster_class(spec, catalog)
    if found is not None:
        pool_classes(spec, found)
        variables(spec, found, facts.api(spec.namespace))
    systems(spec, catalog)


def version(spec: Spec, catalog: Catalog) -> None:
    """Refuses a release that the supervisor does not have."""
    if catalog.releases and not catalog.release(spec.version):
        known = sorted({each.partition("+")[0] for each in catalog.releases})
        raise Refusal(
            f"the supervisor has no release {spec.version} that it can use",
            field="version",
            why=f"there are: {', '.join(known)}",
            next="choose one of these, or subscribe the content library that holds it",
        )


def cluster_class(spec: Spec, catalog: Catalog) -> ClusterClass | None:
    """The class that the cluster will have: the spec's, or the newest that replaces it. None where we may not
    list classes.
    """
    classes = catalog.classes.get(spec.class_namespace)
    if classes is None:
        return None
    if spec.cluster_class not in classes:
        elsewhere = [
            place
            for place, each in catalog.classes.items()
            if each is not None and spec.cluster_class in each
        ]
        raise Refusal(
            f"{spec.class_namespace} has no cluster class {spec.cluster_class}",
            field="cluster_class",
            why=f"it is in {elsewhere[0]}" if elsewhere else "",
            next=f"write class_namespace: {elsewhere[0]}"
            if elsewhere
            else nearest(spec.cluster_class, classes) or "update the vSphere Kubernetes Service",
        )
    written = classes[spec.cluster_class]
    if not written.supports(spec.version):
        fits = [each.name for each in classes.values() if each.supports(spec.version)]
        raise Refusal(
            f"{spec.cluster_class} makes no clusters of {spec.version}",
            field="version",
            why=f"it supports {written.oldest or '?'} to {written.newest or '?'}",
            next=f"write cluster_class: {', or '.join(sorted(fits))}" if fits else "choose another version",
        )
    return catalog.replaced_by(spec.class_namespace, spec.cluster_class, spec.version)


def pool_classes(spec: Spec, found: ClusterClass) -> None:
    """Refuses a worker class that the cluster class does not have."""
    for name, nodes in spec.workers.items():
        if found.pools and nodes.worker_class not in found.pools:
            raise Refusal(
                f"{found.name} has no workers of the class {nodes.worker_class}",
                field=f"workers.{name}.worker_class",
                next=nearest(nodes.worker_class, found.pools),
            )


def variables(spec: Spec, found: ClusterClass, api: str) -> None:
    """Refuses values that the class's own schema doesn't allow."""
    if found.variables is None:
        return
    schemas = {name: variable.schema for name, variable in found.variables.items()}
    topology = body(spec, api, schemas)["topology"]
    given = {each["name"]: each["value"] for each in topology["variables"]}
    for name, variable in found.variables.items():
        if variable.required and name not in given:
            raise Refusal(
                f"{found.name} requires the variable {name}", field="variables", next=f"write {name}"
            )
    _check("", given, found)
    machines = topology.get("workers", {}).get("machineDeployments", ())
    for role, nodes in (
        ("control_plane", topology["controlPlane"]),
        *((f"workers.{each['name']}", each) for each in machines),
    ):
        overrides = nodes.get("variables", {}).get("overrides", ())
        _check(role, {each["name"]: each["value"] for each in overrides}, found)


def _check(role: str, given: Mapping[str, object], found: ClusterClass) -> None:
    known = found.variables or {}
    for name, value in given.items():
        own = OWN_FIELDS.get(name)
        place = ".".join(filter(None, (role, own or f"variables.{name}")))
        if name not in known:
            raise Refusal(f"{found.name} has no variable {name}", field=place, next=nearest(name, known))
        for each in wrong(known[name].schema, value):
            at = f"{name}.{each.path}" if each.path else name
            raise Refusal(
                f"{at} {each.what}",
                field=place if own or not each.path else f"{place}.{each.path}",
                why=f"the schema of {found.name} does not allow it",
                next=each.near,
            )


def systems(spec: Spec, catalog: Catalog) -> None:
    """Refuses an operating system of which the release has no image."""
    release = catalog.release(spec.version)
    if not catalog.images or not release:
        return
    images = of_release(catalog.images, release)
    for field, name in spec.systems.items():
        wanted = dict(part.partition("=")[::2] for part in selector(name).split(","))
        if images and not any(all(each.get(k) == v for k, v in wanted.items()) for each in images):
            known = sorted({f"{each.get('os-name')}-{each.get('os-version')}" for each in images})
            raise Refusal(
                f"{release} has no image of {name}",
                field=field,
                why=f"there are: {', '.join(known)}",
                next="choose one of these; with another one the supervisor would make no node",
            )


def pod_network(spec: Spec) -> None:
    """Refuses a pod network without room for the extra node of a rolling update."""
    if not spec.network.pods:
        return
    blocks = sum(_blocks(each) for each in spec.network.pods)
    surges = [
        surge_of(nodes.rollout.max_surge, nodes.most) for nodes in spec.workers.values() if nodes.rollout
    ]
    nodes, more = sum(pool.count for pool in spec.pools()), max((1, *surges))
    if nodes + more > blocks:
        raise Refusal(
            f"the pod network is too small: {nodes} nodes and {more} more while they are replaced take "
            f"{nodes + more} networks of /{NODE_BITS}, it has {blocks}",
            field="network.pods.0",
            why="it can't be changed later, and without a free network no node can be replaced",
            next=f"write at least {_wide(nodes + more)}",
        )


def _blocks(cidr: str) -> int:
    network = ipaddress.ip_network(cidr)
    if not isinstance(network, ipaddress.IPv4Network):
        return PLENTY
    return 1 << NODE_BITS - network.prefixlen if network.prefixlen <= NODE_BITS else 0


def _wide(parts: int) -> str:
    return f"a /{NODE_BITS - (parts - 1).bit_length()}"

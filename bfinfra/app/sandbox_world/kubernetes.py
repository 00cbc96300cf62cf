"""The Kubernetes clusters that a site doesn't make on a supervisor, and the registries it pulls from."""

from __future__ import annotations

from bfinfra.app.sandbox_world.draft import Draft, Entry


def add(draft: Draft) -> None:
    """Add the site's Kubernetes clusters to the world file."""
    for number, (key, spec) in enumerate(draft.of("kubernetes_cluster"), 11):
        found: Entry = {"address": _probed(draft, key.name) or f"10.230.{number}.1:6443"}
        if nodes := _nodes(draft, key.name):
            found["machines"] = nodes
        else:
            found |= {"nodes": 4, "gpus": 4}
        draft.part("kubernetes_clusters", spec.context or key.name, found)
    for key, spec in draft.of("kubeadm_cluster"):
        host = draft.parts["linux_machines"][spec.control_plane]
        endpoint = spec.endpoint or f"{host['address']}:6443"
        address = endpoint if ":" in endpoint else f"{endpoint}:6443"
        draft.part(
            "kubernetes_clusters",
            key.name,
            {"address": address, "version": spec.version, "kubeadm": spec.control_plane},
        )
    for _, spec in draft.of("registry_credential"):
        if spec.password.way == "env":
            draft.part(
                "registries",
                spec.server,
                {"username": spec.username, "password": {"env": spec.password.target}},
            )


def _probed(draft: Draft, cluster: str) -> str:
    """The address that pods of a cluster must reach: its own API answers there. "" where there is none."""
    found = [
        f"{address}:{port}"
        for _, spec in draft.of("network_path")
        if spec.cluster == cluster and spec.probe
        for address in spec.addresses
        for port in spec.ports
    ]
    for each in found[1:]:
        draft.left_out[each] = (
            "nothing answers there: the sandbox has no servers but those that the site makes"
        )
    return found[0] if found else ""


def _nodes(draft: Draft, cluster: str) -> list[str]:
    """The machines that must be a cluster's nodes, because its pods use what is installed on them."""
    if not any(spec.cluster == cluster and spec.by == "flexdirect" for _, spec in draft.of("workload")):
        return []
    return list(dict.fromkeys(host for _, spec in draft.of("flexdirect_pool") for host in spec.hosts))

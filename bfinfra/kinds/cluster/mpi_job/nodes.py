"""The GPUs of a cluster's nodes, as far as the site's file contains them. Pure."""

from __future__ import annotations

from bfinfra.kinds.cluster_locator import cluster_key
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key


def gpus_of_workers(cluster: Key, site: Specs) -> tuple[int, ...] | None:
    """The GPUs for pods on each worker of a cluster that this site makes; None if the file doesn't contain
    it.
    """
    plugin = next(
        (
            spec
            for key, spec in site.items()
            if key.kind == "nvidia_device_plugin" and cluster_key(spec.cluster, site) == cluster
        ),
        None,
    )
    found = None if plugin is not None and plugin.mig_strategy != "none" else _cards_of_workers(cluster, site)
    shared = plugin.time_slicing or 1 if plugin is not None else 1
    return None if found is None else tuple(count * shared for count in found)


def _cards_of_workers(cluster: Key, site: Specs) -> tuple[int, ...] | None:
    spec = site.get(cluster)
    if spec is None or cluster.kind not in ("kubeadm_cluster", "tanzu_cluster", "vks_cluster"):
        return None
    if cluster.kind == "kubeadm_cluster":
        machines = [
            site.get(Key("virtual_machine", getattr(site.get(Key("linux_host", host)), "vm", None) or ""))
            for host in spec.workers
        ]
        return None if None in machines else tuple(len(machine.vgpus) for machine in machines if machine)
    _, *workers = spec.pools()
    pools = [(pool.count, site.get(Key("vm_class", pool.vm_class))) for pool in workers]
    if any(found is None or found.device_groups for _, found in pools):
        return None  # only hosts report how many GPUs are in a group
    return tuple(
        len(found.vgpus) + len(found.devices) for count, found in pools if found for _ in range(count)
    )

"""The requests of pods that other resources of the site may meet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bfinfra.kinds.capabilities import FLEXDIRECT, LISTS, NVIDIA, claim, gpus, image, on_nodes, secret
from bfinfra.kinds.cluster.workload.manifests import Manifest, leaves
from bfinfra.model.order import Capability, Specs

FOLDER = "/etc/bitfusionio"
"""FlexDirect's files on the nodes."""
SECRETS = frozenset(
    {
        ("secret", "secretName"),
        ("secret", "name"),
        ("secretKeyRef", "name"),
        ("secretRef", "name"),
        ("imagePullSecrets", "name"),
    }
)
CLAIM, HOST_PATH = ("persistentVolumeClaim", "claimName"), ("hostPath", "path")
AMOUNTS, CONTAINERS = ("limits", "requests"), ("containers", "initContainers")


def of_pod(pod: Manifest, space: str, cluster: str, site: Specs) -> Iterator[Capability]:
    """The extended resources, devices, images, Secrets, claims and FlexDirect that a pod's spec asks for.
    `space`: its namespace.
    """
    if pod.get("resourceClaims"):
        yield from gpus(NVIDIA, cluster, site)
    for above, field, value in leaves(pod):
        if above in AMOUNTS and "/" in field:
            yield from gpus(field, cluster, site)
        elif isinstance(value, str):
            yield from _named((above, field), value, space, cluster, site)


def _named(at: tuple[str, str], value: str, space: str, cluster: str, site: Specs) -> Iterator[Capability]:
    if at in SECRETS:
        yield secret(value, space, cluster, site)
    elif at == CLAIM:
        yield claim(value, space, cluster, site)
    elif at[0] in CONTAINERS and at[1] == "image":
        yield image(value)
    elif at == HOST_PATH and value.rstrip("/") == FOLDER:
        yield from flexdirect(cluster, site)


def flexdirect(cluster: str, site: Specs) -> Iterator[Capability]:
    """The FlexDirect program and its server lists, on the nodes."""
    yield from on_nodes(FLEXDIRECT, cluster, site)
    yield from on_nodes(LISTS, cluster, site)


def claims(documents: Iterable[Manifest]) -> Iterator[str]:
    """The names of the claims in a manifest."""
    return (str(each["metadata"]["name"]) for each in documents if each["kind"] == "PersistentVolumeClaim")

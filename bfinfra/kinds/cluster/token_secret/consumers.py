"""Finds who uses the token's Secrets: the pods that mount them, and the workloads that own the pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bfinfra.backends.kubernetes.marks import notes
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

Object = dict[str, Any]
ROLLED = ("Deployment", "StatefulSet", "DaemonSet")
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Consumer:
    """A workload, or a pod that nothing would restart. `notified`: whether it was restarted for this token;
    `late`: whether it has older pods.
    """

    kind: str
    namespace: str
    name: str
    cluster: str
    notified: bool
    late: bool

    @property
    def controlled(self) -> bool:
        """True if it can be restarted pod by pod."""
        return self.kind in ROLLED


def consumers(
    cluster: ClusterClient,
    where: str,
    pods: Sequence[Object],
    since: Mapping[tuple[str, str], str | None],
    token: tuple[str, str],
) -> tuple[Consumer, ...]:
    """The consumers with pods older than their Secret's content. `since`: (namespace, Secret) → when its
    content was replaced, "" if that isn't known, None if it is still stale. `token`: annotation and value.
    """
    found: dict[tuple[str, str, str], Consumer] = {}
    owners: dict[tuple[str, str, str], Object] = {}
    for pod in pods:
        metadata = pod["metadata"]
        space = metadata["namespace"]
        if metadata.get("deletionTimestamp") or (pod.get("status") or {}).get("phase") in ENDED:
            continue
        ages = [
            _older(str(metadata.get("creationTimestamp")), since[space, name])
            for name in secrets_of(pod)
            if (space, name) in since
        ]
        if not any(same for same, _ in ages):
            continue
        kind, name = _owner(cluster, pod, owners)
        notified = (
            kind in ROLLED
            and notes((owners[kind, space, name].get("spec") or {}).get("template") or {}).get(token[0])
            == token[1]
        )
        before = found.get((kind, space, name))
        late = any(older for _, older in ages) or (before is not None and before.late)
        found[kind, space, name] = Consumer(kind, space, name, where, notified, late)
    return tuple(found[key] for key in sorted(found))


def secrets_of(pod: Mapping[str, Any]) -> set[str]:
    """The Secrets that a pod uses: in volumes, projections, variables."""
    return {name for name in _named(pod.get("spec") or {}) if name}


def _named(spec: Mapping[str, Any]) -> Iterator[str | None]:
    """The name of a Secret, or None, of each place in a pod that may have one."""
    for volume in spec.get("volumes") or ():
        yield (volume.get("secret") or {}).get("secretName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get("secret") or {}).get("name")
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for each in container.get("env") or ():
            yield ((each.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
        for each in container.get("envFrom") or ():
            yield (each.get("secretRef") or {}).get("name")


def _older(created: str, since: str | None) -> tuple[bool, bool]:
    """Return whether a pod may be older than the content, and whether it surely is. Times have a resolution
    of one second.
    """
    if since is None:
        return True, True
    try:
        made, replaced = (datetime.fromisoformat(each) for each in (created, since))
        surely = made < replaced
    except (TypeError, ValueError):  # no time, or one without a zone
        return False, False
    return made <= replaced, surely


def _owner(cluster: ClusterClient, pod: Object, known: dict[tuple[str, str, str], Object]) -> tuple[str, str]:
    """Kind and name of the workload that would restart the pod; the pod's own if there is none, or none that
    can be waited for.
    """
    space, owner = pod["metadata"]["namespace"], _controller(pod)
    if owner and owner[0] == "ReplicaSet":
        owner = _controller(_get(cluster, *owner, space, known))
    if owner and owner[0] in ROLLED:
        _get(cluster, *owner, space, known)
    return owner or ("Pod", str(pod["metadata"]["name"]))


def _get(
    cluster: ClusterClient, kind: str, name: str, space: str, known: dict[tuple[str, str, str], Object]
) -> Object:
    key = kind, space, name
    if key not in known:
        known[key] = cluster.get("apps/v1", kind, name, space) or {"metadata": {}}
    return known[key]


def _controller(obj: Mapping[str, Any]) -> tuple[str, str] | None:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next(((str(each["kind"]), str(each["name"])) for each in owners if each.get("controller")), None)

"""Checks of a pod's spec."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.sandbox.kubernetes.device_checks import pod_claims
from bfinfra.sandbox.kubernetes.errors import Cause
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of
from bfinfra.sandbox.kubernetes.selectors import by_selector

PULL = ("Always", "IfNotPresent", "Never")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RESTART = ("Always", "OnFailure", "Never")


def pod_causes(pod: Object, path: str) -> Iterator[Cause]:
    """Everything that is wrong with a pod or a pod template. `path` leads to its spec."""
    spec = pod.get("spec") or {}
    if not spec.get("containers"):
        yield Cause("FieldValueRequired", "Required value", f"{path}.containers")
    policy = spec.get("restartPolicy", "Always")
    if policy not in RESTART:
        yield _unsupported(f"{path}.restartPolicy", policy, RESTART)
    volumes = {each.get("name") for each in spec.get("volumes") or []}
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(spec.get(kind) or []):
            yield from _container(container, f"{path}.{kind}[{position}]", volumes)
    names = [each.get("name") for kind in ("initContainers", "containers") for each in spec.get(kind) or []]
    for name in sorted({str(each) for each in names if names.count(each) > 1}):
        yield Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{path}.containers")
    yield from pod_claims(spec, path)


def _container(container: Object, path: str, volumes: set[str | None]) -> Iterator[Cause]:
    for field in ("name", "image"):
        if not container.get(field):
            yield Cause("FieldValueRequired", "Required value", f"{path}.{field}")
    policy = container.get("imagePullPolicy", "Always")
    if policy not in PULL:
        yield _unsupported(f"{path}.imagePullPolicy", policy, PULL)
    for position, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            yield Cause(
                "FieldValueNotFound",
                f'Not found: "{mount.get("name")}"',
                f"{path}.volumeMounts[{position}].name",
            )
        if not mount.get("mountPath"):
            yield Cause("FieldValueRequired", "Required value", f"{path}.volumeMounts[{position}].mountPath")


def _unsupported(field: str, value: str, known: tuple[str, ...]) -> Cause:
    listed = ", ".join(f'"{each}"' for each in known)
    return Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)


def containers(pod: Object) -> list[Object]:
    """The init containers, then the others."""
    spec = pod.get("spec") or {}
    return [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]


def secrets_of(pod: Object) -> set[str]:
    """Names of the Secrets that a pod can't start without."""
    found = set()
    for volume in dig(pod, "spec", "volumes", default=[]):
        if "secret" in volume and not volume["secret"].get("optional"):
            found.add(volume["secret"].get("secretName", ""))
        for source in dig(volume, "projected", "sources", default=[]):
            if "secret" in source and not source["secret"].get("optional"):
                found.add(source["secret"].get("name", ""))
    for container in containers(pod):
        for each in container.get("env") or []:
            reference = dig(each, "valueFrom", "secretKeyRef")
            if reference and not reference.get("optional"):
                found.add(reference["name"])
        found |= {
            each["secretRef"]["name"]
            for each in container.get("envFrom") or []
            if "secretRef" in each and not each["secretRef"].get("optional")
        }
    return found


def config_maps_of(pod: Object) -> set[str]:
    """Names of the ConfigMaps that a pod can't start without."""
    volumes = dig(pod, "spec", "volumes", default=[])
    found = {
        each["configMap"].get("name", "")
        for each in volumes
        if "configMap" in each and not each["configMap"].get("optional")
    }
    for container in containers(pod):
        references = [dig(each, "valueFrom", "configMapKeyRef") for each in container.get("env") or []]
        found |= {each["name"] for each in references if each and not each.get("optional")}
    return found


def claims_of(pod: Object) -> set[str]:
    """Names of the claims that a pod mounts."""
    return {
        each["persistentVolumeClaim"]["claimName"]
        for each in dig(pod, "spec", "volumes", default=[])
        if "persistentVolumeClaim" in each
    }


def selects(node: Object, pod: Object) -> bool:
    """Return whether the pod's node selector and the affinity that it requires, if it has them, match this
    node.
    """
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (dig(pod, "spec", "nodeSelector") or {}).items()):
        return False
    terms = dig(pod, "spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    return terms is None or any(_meets(node, each) for each in terms)


def _meets(node: Object, term: Object) -> bool:
    fields, labels = term.get("matchFields") or [], term.get("matchExpressions") or []
    named = {"metadata": {"labels": {"metadata.name": name_of(node)}}}
    return (
        bool(fields or labels)
        and by_selector({"matchExpressions": labels})(node)
        and by_selector({"matchExpressions": fields})(named)
    )


def tolerates(pod: Object, node: Object, effects: tuple[str, ...] = ("NoSchedule",)) -> bool:
    """Return whether the pod tolerates the node's taints of these effects."""
    taints = [each for each in dig(node, "spec", "taints", default=[]) if each.get("effect") in effects]
    tolerations = dig(pod, "spec", "tolerations") or []
    return all(any(_tolerated(taint, each) for each in tolerations) for taint in taints)


def _tolerated(taint: Object, toleration: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool(
        toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")
    )

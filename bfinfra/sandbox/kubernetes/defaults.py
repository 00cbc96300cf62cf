"""The defaults that a server fills in for built-in kinds, so that an object reads back as it would from a
real one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from bfinfra.sandbox.kubernetes.errors import bad_request
from bfinfra.sandbox.kubernetes.objects import Object, dig

KNOWS_SECCOMP = 19  # the minor version whose pods have seccompProfile
NAMES_NAMESPACES = 21  # the minor version that labels a namespace with its name
CLAIMS_DEVICES = 34  # the minor version whose pods can have resource claims


def with_defaults(thing: Object, minor: int) -> Object:
    """The object with its kind's defaults in a release, by its minor version. The given object may be
    changed.
    """
    rule = RULES.get(thing.get("kind", ""))
    if rule:
        rule(thing)
    if minor < KNOWS_SECCOMP:
        _drop_seccomp(thing)
    if minor < CLAIMS_DEVICES:
        _drop_claims(thing)
    return named(thing) if thing.get("kind") == "Namespace" and minor >= NAMES_NAMESPACES else thing


def _drop_seccomp(value: object) -> None:
    """Without a word, as such a server does."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _drop_seccomp(inner)
    if isinstance(value, dict) and isinstance(value.get("securityContext"), dict):
        value["securityContext"].pop("seccompProfile", None)


def _drop_claims(thing: Object) -> None:
    """Resource claims of a pod, or of the pods of a workload. Without a word, as such a server does."""
    spec = thing.get("spec") or {}
    job = dig(spec, "jobTemplate", "spec", default=spec)
    pod = spec if thing.get("kind") == "Pod" else dig(job, "template", "spec", default={})
    pod.pop("resourceClaims", None)
    for container in [*(pod.get("initContainers") or []), *(pod.get("containers") or [])]:
        (container.get("resources") or {}).pop("claims", None)


def named(namespace: Object) -> Object:
    """A namespace with the label that contains its name. The given object may be changed."""
    metadata = namespace["metadata"]
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        "kubernetes.io/metadata.name": metadata.get("name", ""),
    }
    return namespace


def _fill(target: Object, **values: object) -> None:
    for name, value in values.items():
        if target.get(name) is None:
            target[name] = value


def pod_spec(spec: Object) -> None:
    """Defaults of a pod's spec, also inside templates."""
    _fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        tag = container.get("image", "").rpartition("/")[2].partition(":")[2] or "latest"
        pull = "Always" if tag == "latest" and "@" not in container.get("image", "") else "IfNotPresent"
        _fill(
            container,
            resources={},
            terminationMessagePath="/dev/termination-log",
            terminationMessagePolicy="File",
            imagePullPolicy=pull,
        )
        limits = container["resources"].get("limits") or {}
        if limits:
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
    for volume in spec.get("volumes", []):
        for kind in ("secret", "configMap", "projected", "downwardAPI"):
            if isinstance(volume.get(kind), dict):
                _fill(volume[kind], defaultMode=420)


def _pod(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    pod_spec(spec)
    _fill(spec, enableServiceLinks=True)
    _fill(thing.setdefault("status", {}), phase="Pending", qosClass=_quality(spec))


def _quality(spec: Object) -> str:
    every = [each.get("resources", {}) for each in spec.get("containers", [])]
    if not any(each.get("limits") or each.get("requests") for each in every):
        return "BestEffort"
    sure = all(
        {"cpu", "memory"} <= set(each.get("limits") or {}) and each.get("limits") == each.get("requests")
        for each in every
    )
    return "Guaranteed" if sure else "Burstable"


def _template(thing: Object) -> Object:
    spec: Object = thing.setdefault("spec", {})
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))
    return spec


def _deployment(thing: Object) -> None:
    spec = _template(thing)
    _fill(
        spec,
        replicas=1,
        strategy={"type": "RollingUpdate"},
        revisionHistoryLimit=10,
        progressDeadlineSeconds=600,
    )
    if spec["strategy"].get("type") == "RollingUpdate":
        _fill(spec["strategy"], rollingUpdate={"maxUnavailable": "25%", "maxSurge": "25%"})
    thing.setdefault("status", {})


def _daemon_set(thing: Object) -> None:
    _fill(
        _template(thing),
        revisionHistoryLimit=10,
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    )
    thing.setdefault("status", {})


def _stateful_set(thing: Object) -> None:
    _fill(
        _template(thing),
        replicas=1,
        podManagementPolicy="OrderedReady",
        revisionHistoryLimit=10,
        serviceName="",
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    )
    thing.setdefault("status", {})


def _replica_set(thing: Object) -> None:
    _fill(_template(thing), replicas=1)
    thing.setdefault("status", {})


def _job(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    template = spec.setdefault("template", {})
    policy = template.get("spec", {}).get("restartPolicy")
    _template(thing)
    if policy is None:
        template["spec"]["restartPolicy"] = "Always"  # which the check then refuses, as a real server does
    _fill(
        spec,
        parallelism=1,
        completions=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="TerminatingOrFailed",
    )
    thing.setdefault("status", {})


def _secret(thing: Object) -> None:
    plain = thing.pop("stringData", None) or {}
    if plain:
        thing["data"] = {
            **thing.get("data", {}),
            **{key: base64.b64encode(value.encode()).decode() for key, value in plain.items()},
        }
    for value in (thing.get("data") or {}).values():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise bad_request(
                'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0'
            ) from None
    _fill(thing, type="Opaque")


def _claim(thing: Object) -> None:
    _fill(thing.setdefault("spec", {}), volumeMode="Filesystem")
    _fill(thing.setdefault("status", {}), phase="Pending")


def _namespace(thing: Object) -> None:
    if not thing["metadata"].get("deletionTimestamp"):
        _fill(thing.setdefault("spec", {}), finalizers=["kubernetes"])
    _fill(thing.setdefault("status", {}), phase="Active")


def _service(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    _fill(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
    for port in spec.get("ports", []):
        _fill(port, protocol="TCP", targetPort=port.get("port"))


def _storage_class(thing: Object) -> None:
    _fill(thing, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _mutating(thing: Object) -> None:
    for hook in thing.get("webhooks", []):
        _fill(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
            reinvocationPolicy="Never",
        )
        for rule in hook.get("rules", []):
            _fill(rule, scope="*")
        if hook.get("clientConfig", {}).get("service"):
            _fill(hook["clientConfig"]["service"], port=443)


def _validating(thing: Object) -> None:
    _mutating(thing)
    for hook in thing.get("webhooks", []):
        hook.pop("reinvocationPolicy", None)


def _binding(thing: Object) -> None:
    for subject in thing.get("subjects", []):
        if subject.get("kind") in ("User", "Group"):
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def _resource_claim(thing: Object) -> None:
    _requests(dig(thing, "spec", "devices", "requests", default=[]))
    thing.setdefault("status", {})


def _claim_template(thing: Object) -> None:
    _requests(dig(thing, "spec", "spec", "devices", "requests", default=[]))


def _requests(requests: list[Object]) -> None:
    for each in requests:
        if isinstance(exactly := each.get("exactly"), dict):
            exactly["allocationMode"] = exactly.get("allocationMode") or "ExactCount"
            if exactly["allocationMode"] == "ExactCount":
                exactly["count"] = exactly.get("count") or 1


def _definition(thing: Object) -> None:
    spec = thing.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    _fill(spec, conversion={"strategy": "None"})
    thing.setdefault("status", {})


RULES: dict[str, Callable[[Object], None]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "DaemonSet": _daemon_set,
    "StatefulSet": _stateful_set,
    "ReplicaSet": _replica_set,
    "Job": _job,
    "Secret": _secret,
    "PersistentVolumeClaim": _claim,
    "Namespace": _namespace,
    "Service": _service,
    "StorageClass": _storage_class,
    "MutatingWebhookConfiguration": _mutating,
    "ValidatingWebhookConfiguration": _validating,
    "CustomResourceDefinition": _definition,
    "ResourceClaim": _resource_claim,
    "ResourceClaimTemplate": _claim_template,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
}

"""The checks that a server answers with 422: names, required fields, fields that may not change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from bfinfra.sandbox.kubernetes import device_checks
from bfinfra.sandbox.kubernetes.causes import (
    LABEL,
    LABEL_RULE,
    SUBDOMAIN,
    SUBDOMAIN_RULE,
    immutable,
    required,
    unsupported,
    wrong,
)
from bfinfra.sandbox.kubernetes.custom import schema_causes
from bfinfra.sandbox.kubernetes.errors import Cause, invalid
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of
from bfinfra.sandbox.kubernetes.pods import pod_causes
from bfinfra.sandbox.kubernetes.registry import Resource
from bfinfra.sandbox.kubernetes.target import Target

HOOK_WORDS = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}
SCOPES = ("*", "Cluster", "Namespaced")
FREE_NAMES = {"rbac.authorization.k8s.io"}  # roles and bindings take any path segment


def check_name(resource: Resource, name: str) -> None:
    """Refuse (422) a name that is no DNS name."""
    if resource.group in FREE_NAMES:
        return
    short = resource.kind == "Namespace"
    if re.fullmatch(LABEL if short else SUBDOMAIN, name) and len(name) <= (63 if short else 253):
        return
    raise invalid(
        resource.kind,
        resource.group,
        name,
        [wrong("metadata.name", name, LABEL_RULE if short else SUBDOMAIN_RULE)],
    )


def validate(target: Target, before: Object | None, after: Object) -> None:
    """Refuse (422) an object that its kind doesn't allow."""
    resource = target.resource
    if target.subresource and not (resource.custom and target.subresource == "status"):
        return
    if resource.custom:
        causes = list(schema_causes(resource.type, after))
    else:
        rule = RULES.get((resource.group, resource.kind))
        causes = list(rule(before, after)) if rule else []
    if causes:
        raise invalid(resource.kind, resource.group, name_of(after), causes)


def _secret(before: Object | None, after: Object) -> Iterator[Cause]:
    for key in after.get("data") or {}:
        if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
            yield wrong(
                f"data[{key}]",
                key,
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            )
    if after.get("type") == "kubernetes.io/dockerconfigjson" and ".dockerconfigjson" not in (
        after.get("data") or {}
    ):
        yield required("data[.dockerconfigjson]")
    if before and before.get("type") != after.get("type"):
        yield immutable("type", after.get("type"))
    yield from _frozen_data(before, after)


def _frozen_data(before: Object | None, after: Object) -> Iterator[Cause]:
    if (
        before
        and before.get("immutable")
        and any(before.get(key) != after.get(key) for key in ("data", "immutable", "binaryData"))
    ):
        yield Cause("FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set", "data")


def _claim(before: Object | None, after: Object) -> Iterator[Cause]:
    spec = after.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if not dig(spec, "resources", "requests", "storage"):
        yield required("spec.resources[storage]")
    old = {
        key: value
        for key, value in ((before or {}).get("spec") or spec).items()
        if key not in ("resources", "volumeName")
    }
    if {key: value for key, value in spec.items() if key not in ("resources", "volumeName")} != old:
        why = (
            "Forbidden: spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims"
        )
        yield Cause("FieldValueForbidden", why, "spec")


def _job(before: Object | None, after: Object) -> Iterator[Cause]:
    if dig(after, "spec", "template", "spec", "restartPolicy") not in ("OnFailure", "Never"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from pod_causes(dig(after, "spec", "template", default={}), "spec.template.spec")
    if before and dig(before, "spec", "template") != dig(after, "spec", "template"):
        yield immutable("spec.template", "…")


def _workload(before: Object | None, after: Object) -> Iterator[Cause]:
    selector, labels = (
        dig(after, "spec", "selector", "matchLabels"),
        dig(after, "spec", "template", "metadata", "labels", default={}),
    )
    if not dig(after, "spec", "selector"):
        yield required("spec.selector")
    elif any(labels.get(key) != value for key, value in (selector or {}).items()):
        yield wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from selector_causes(dig(after, "spec", "selector"), "spec.selector")
    yield from pod_causes(dig(after, "spec", "template", default={}), "spec.template.spec")
    if before and dig(before, "spec", "selector") != dig(after, "spec", "selector"):
        yield immutable("spec.selector", dig(after, "spec", "selector"))


def _pod(before: Object | None, after: Object) -> Iterator[Cause]:
    yield from pod_causes(after, "spec")
    if before and _frozen_pod(before) != _frozen_pod(after):
        yield Cause(
            "FieldValueForbidden",
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
            "spec",
        )


def _frozen_pod(pod: Object) -> Any:
    spec = {
        key: value
        for key, value in pod["spec"].items()
        if key not in ("activeDeadlineSeconds", "tolerations", "nodeName")
    }
    for kind in ("containers", "initContainers"):
        spec[kind] = [
            {key: value for key, value in each.items() if key != "image"} for each in spec.get(kind, [])
        ]
    return spec


def _binding(before: Object | None, after: Object) -> Iterator[Cause]:
    if before and before.get("roleRef") != after.get("roleRef"):
        yield wrong("roleRef", after.get("roleRef"), "cannot change roleRef")


def _webhooks(_: Object | None, after: Object) -> Iterator[Cause]:
    for number, hook in enumerate(after.get("webhooks") or []):
        path = f"webhooks[{number}]"
        versions = hook.get("admissionReviewVersions") or []
        if not versions:
            yield required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
        elif not {"v1", "v1beta1"} & {*versions}:
            yield wrong(
                f"{path}.admissionReviewVersions", versions, "must include at least one of v1, v1beta1"
            )
        if (effects := hook.get("sideEffects")) not in ("None", "NoneOnDryRun"):
            reason = f'Unsupported value: "{effects}": supported values: "None", "NoneOnDryRun"'
            yield (
                Cause("FieldValueNotSupported", reason, f"{path}.sideEffects")
                if effects
                else required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
            )
        if ("url" in hook.get("clientConfig", {})) == ("service" in hook.get("clientConfig", {})):
            yield required(f"{path}.clientConfig", "exactly one of url or service is required")
        if hook.get("name", "").count(".") < 2:
            yield wrong(
                f"{path}.name",
                hook.get("name", ""),
                "should be a domain with at least three segments separated by dots",
            )
        yield from _webhook_fields(hook, path)


def _webhook_fields(hook: Object, path: str) -> Iterator[Cause]:
    if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
        yield wrong(
            f"{path}.timeoutSeconds",
            hook["timeoutSeconds"],
            "the timeout value must be between 1 and 30 seconds",
        )
    for field, known in HOOK_WORDS.items():
        if hook.get(field, known[0]) not in known:
            yield unsupported(f"{path}.{field}", hook[field], known)
    for number, rule in enumerate(hook.get("rules") or []):
        yield from (
            required(f"{path}.rules[{number}].{field}")
            for field in ("operations", "apiGroups", "apiVersions", "resources")
            if not rule.get(field)
        )
        if rule.get("scope", "*") not in SCOPES:
            yield unsupported(f"{path}.rules[{number}].scope", rule["scope"], SCOPES)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selector_causes(hook.get(field), f"{path}.{field}")
    if hook.get("matchConditions"):
        yield Cause(
            "FieldValueForbidden", "Forbidden: the sandbox does not implement CEL", f"{path}.matchConditions"
        )


def selector_causes(selector: Object | None, path: str) -> Iterator[Cause]:
    """Everything that is wrong with a label selector."""
    for number, each in enumerate((selector or {}).get("matchExpressions") or []):
        where, operator = f"{path}.matchExpressions[{number}]", each.get("operator", "")
        if operator in ("In", "NotIn"):
            if not each.get("values"):
                yield required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator not in ("Exists", "DoesNotExist"):
            yield wrong(f"{where}.operator", operator, "not a valid selector operator")
        elif each.get("values"):
            yield Cause(
                "FieldValueForbidden",
                "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                f"{where}.values",
            )


RULES: dict[tuple[str, str], Callable[[Object | None, Object], Iterator[Cause]]] = {
    ("", "Secret"): _secret,
    ("", "ConfigMap"): _frozen_data,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("apps", "Deployment"): _workload,
    ("apps", "DaemonSet"): _workload,
    ("apps", "StatefulSet"): _workload,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("resource.k8s.io", "DeviceClass"): device_checks.device_class,
    ("resource.k8s.io", "ResourceClaim"): device_checks.claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): device_checks.template,
    ("resource.k8s.io", "ResourceSlice"): device_checks.resource_slice,
    ("rbac.authorization.k8s.io", "RoleBinding"): _binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _binding,
}

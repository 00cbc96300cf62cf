"""What can be known before anything is written. Pure."""

from __future__ import annotations

from typing import Any

from bfinfra.kinds._homes import real_name
from bfinfra.kinds.bitfusion_device_plugin.spec import Spec
from bfinfra.kinds.bitfusion_device_plugin.state import Ground
from bfinfra.model.errors import Refusal
from bfinfra.model.kind import Around, Need

ENFORCE = "pod-security.kubernetes.io/enforce"
NAMED = "kubernetes.io/metadata.name"
SYSTEM = "kube-system"


def check(spec: Spec, around: Around, ground: Ground) -> None:
    """Refusal."""
    _alone(spec, around)
    for field in ("namespace", "plugin_namespace"):
        _there(field, spec, around, ground)
    for number, quota in enumerate(spec.quotas):
        _there(f"quotas.{number}.namespace", spec, around, ground, quota.namespace)
    _privileged(spec, around, ground)
    _token(spec, around)
    _credential(spec, around)
    if spec.failure_policy == "Fail" and NAMED not in (ground.labels.get(SYSTEM) or {}):
        raise Refusal("the system's pods would be shown to the webhook", field="failure_policy",
                      why=f"namespaces in this cluster have no label {NAMED}, by which they are left out (Kubernetes before 1.21)", next="write failure_policy: Ignore")


def _alone(spec: Spec, around: Around) -> None:
    for other, (wanted, _) in around.sharing("cluster").items():
        if wanted is not None:
            raise Refusal(f"{other} is in {spec.cluster} already", field="cluster", why="a cluster has one device plug-in: its objects' names are fixed", next="keep one of them")


def _own(need: Need | None, spec: Spec) -> Any:
    """The spec of this site's namespace in the cluster, or None."""
    return need.spec if need is not None and need.spec is not None and need.spec.cluster == spec.cluster else None


def _there(field: str, spec: Spec, around: Around, ground: Ground, written: str = "") -> None:
    name = written or getattr(spec, field)
    if _own(around.needs.get(field), spec) is None and name in ground.labels and ground.labels[name] is None:
        raise Refusal(f"there is no namespace {name}", field=field, why=f"neither in the cluster {spec.cluster} nor in this site",
                      next=f"write  namespace: {{{name}: {{cluster: {spec.cluster}}}}}")


def _privileged(spec: Spec, around: Around, ground: Ground) -> None:
    own = _own(around.needs.get("plugin_namespace"), spec)
    if own is not None:
        level = own.pod_security.enforce or ""
        remedy = f"write pod_security: {{enforce: privileged}} into namespace/{spec.plugin_namespace}"
    else:
        level, remedy = (ground.labels.get(spec.plugin_namespace) or {}).get(ENFORCE, "privileged"), "name a namespace that allows it, or one of this site"
    if level != "privileged":
        raise Refusal(f"Pod Security refuses the plug-in's pods in {spec.plugin_namespace}", field="plugin_namespace",
                      why=f"they are privileged, use the host's network and its kubelet's folder; the namespace's level is {level or 'not given'}", next=remedy)


def _token(spec: Spec, around: Around) -> None:
    need = around.needs.get("token_secret")
    if need is None or need.spec is None:
        return
    spaces = {real_name(each, spec.cluster, None) for each in need.spec.namespaces}
    if need.spec.cluster != spec.cluster or SYSTEM not in spaces:
        raise Refusal(f"{need.key} puts no token into {SYSTEM} of {spec.cluster}", field="token_secret", why="the webhook copies it from there",
                      next=f"add {SYSTEM} to its namespaces" if need.spec.cluster == spec.cluster else "name one for that cluster")
    if need.spec.form != spec.release.form:
        raise Refusal(f"{need.key} has the form {need.spec.form}", field="token_secret", why=f"release {spec.version} looks for the form {spec.release.form}",
                      next=f"write form: {spec.release.form} there")


def _credential(spec: Spec, around: Around) -> None:
    need = around.needs.get("registry_credential")
    if need is None or need.spec is None:
        return
    missing = [each for each in dict.fromkeys((spec.namespace, spec.plugin_namespace)) if each not in need.spec.namespaces]
    if need.spec.cluster != spec.cluster or missing:
        raise Refusal(f"{need.key} does not reach {', '.join(missing) or spec.cluster}", field="registry_credential",
                      why="the webhook's and the plug-in's pods pull with it", next="add the namespaces there, or name one for that cluster")

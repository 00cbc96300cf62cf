"""Checks of a device plug-in before anything is written. Pure."""

from __future__ import annotations

from typing import Any

from bfinfra.formats.shell import word
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import shown
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import NamespaceFacts
from bfinfra.kinds.cluster_locator import real_name
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.device_plugin import SYSTEM as SYSTEMS
from bfinfra.model.errors import Refusal

ENFORCE = "pod-security.kubernetes.io/enforce"
NAMED = "kubernetes.io/metadata.name"
SYSTEM = "kube-system"


def check(spec: Spec, context: PlanContext, namespace_facts: NamespaceFacts) -> None:
    """Raises Refusal for a spec that can't work."""
    _alone(spec, context)
    for field in ("namespace", "plugin_namespace"):
        _there(field, spec, context, namespace_facts)
    for number, quota in enumerate(spec.quotas):
        _there(f"quotas.{number}.namespace", spec, context, namespace_facts, quota.namespace)
    _shown(spec, context, namespace_facts)
    _privileged(spec, context, namespace_facts)
    _unprivileged(spec, context, namespace_facts)
    _token(spec, context)
    _credential(spec, context)
    if spec.failure_policy == "Fail" and NAMED not in (namespace_facts.labels.get(SYSTEM) or {}):
        raise Refusal(
            "the system's pods would be shown to the webhook",
            field="failure_policy",
            why=(
                f"namespaces in this cluster have no label {NAMED}, which excludes the system's "
                "(Kubernetes before 1.21)"
            ),
            next="write failure_policy: Ignore",
        )


def _alone(spec: Spec, context: PlanContext) -> None:
    for other, (wanted, _) in context.sharing("cluster").items():
        if wanted is not None:
            raise Refusal(
                f"{other} is in {spec.cluster} already",
                field="cluster",
                why="a cluster has one device plug-in: its objects' names are fixed",
                next="keep one of them",
            )


def _own(need: ResolvedRef | None, spec: Spec) -> Any:
    """The spec of this site's namespace in the cluster, or None."""
    return (
        need.spec
        if need is not None and need.spec is not None and need.spec.cluster == spec.cluster
        else None
    )


def _there(
    field: str, spec: Spec, context: PlanContext, namespace_facts: NamespaceFacts, written: str = ""
) -> None:
    name = written or getattr(spec, field)
    if (
        _own(context.needs.get(field), spec) is None
        and name in namespace_facts.labels
        and namespace_facts.labels[name] is None
    ):
        raise Refusal(
            f"there is no namespace {name}",
            field=field,
            why=f"neither in the cluster {spec.cluster} nor in this site",
            next=f"write  namespace: {{{name}: {{cluster: {spec.cluster}}}}}",
        )


def _shown(spec: Spec, context: PlanContext, namespace_facts: NamespaceFacts) -> None:
    """Raises Refusal unless each of `namespaces` exists and can be selected, and the webhook gets the pods of
    at least one.
    """
    for number, name in enumerate(spec.namespaces):
        field = f"namespaces.{number}"
        _there(field, spec, context, namespace_facts, name)
        need = context.needs.get(field)
        own = _own(need, spec)
        state = need.state if need is not None else None
        labels = (
            (state.labels if state is not None else None)
            if own is not None
            else namespace_facts.labels.get(name)
        )
        if labels is not None and NAMED not in labels:
            real = real_name(name, spec.cluster, need)
            raise Refusal(
                f"the namespace {real} can't be selected",
                field=field,
                why=f"it has no label {NAMED}, which Kubernetes sets only from 1.21 on",
                next=f"kubectl label namespace {word(real)} {word(f'{NAMED}={real}')}",
            )
    own_spaces = [
        real_name(getattr(spec, field), spec.cluster, context.needs.get(field))
        for field in ("namespace", "plugin_namespace")
    ]
    chosen = [
        real_name(name, spec.cluster, context.needs.get(f"namespaces.{number}"))
        for number, name in enumerate(spec.namespaces)
    ]
    if chosen and not shown(chosen, *own_spaces):
        raise Refusal(
            "no pod would be shown to the webhook",
            field="namespaces",
            why="pods of the system's namespaces and of the plug-in's own never are",
            next="name a namespace of users, or leave namespaces out",
        )


def _privileged(spec: Spec, context: PlanContext, namespace_facts: NamespaceFacts) -> None:
    own = _own(context.needs.get("plugin_namespace"), spec)
    if own is not None:
        level = own.pod_security.enforce or ""
        remedy = f"write pod_security: {{enforce: privileged}} into namespace/{spec.plugin_namespace}"
    else:
        level, remedy = (
            (namespace_facts.labels.get(spec.plugin_namespace) or {}).get(ENFORCE, "privileged"),
            "name a namespace that allows it, or one of this site",
        )
    if level != "privileged":
        raise Refusal(
            f"Pod Security refuses the plug-in's pods in {spec.plugin_namespace}",
            field="plugin_namespace",
            why=(
                "they are privileged, use the host's network and its kubelet's folder; the namespace's "
                f"level is {level or 'not given'}"
            ),
            next=remedy,
        )


def _unprivileged(spec: Spec, context: PlanContext, namespace_facts: NamespaceFacts) -> None:
    """Raises Refusal at the level `restricted`, which refuses the webhook's image, as it runs as root."""
    own = _own(context.needs.get("namespace"), spec)
    level = (
        own.pod_security.enforce
        if own is not None
        else (namespace_facts.labels.get(spec.namespace) or {}).get(ENFORCE)
    )
    if level == "restricted":
        remedy = (
            f"write pod_security: {{enforce: baseline}} into namespace/{spec.namespace}"
            if own is not None
            else "name a namespace at the level baseline, or one of this site"
        )
        raise Refusal(
            f"Pod Security refuses the webhook's pods in {spec.namespace}",
            field="namespace",
            why="its image runs as root, and the namespace's level is restricted",
            next=remedy,
        )


def _token(spec: Spec, context: PlanContext) -> None:
    need = context.needs.get("token_secret")
    if need is None or need.spec is None:
        return
    spaces = {real_name(each, spec.cluster, None) for each in need.spec.namespaces}
    if need.spec.cluster != spec.cluster or SYSTEM not in spaces:
        raise Refusal(
            f"{need.key} puts no token into {SYSTEM} of {spec.cluster}",
            field="token_secret",
            why="the webhook copies it from there",
            next=f"add {SYSTEM} to its namespaces"
            if need.spec.cluster == spec.cluster
            else "name one for that cluster",
        )
    if need.spec.form != spec.release.form:
        raise Refusal(
            f"{need.key} has the form {need.spec.form}",
            field="token_secret",
            why=f"release {spec.version} needs the form {spec.release.form}",
            next=f"write form: {spec.release.form} there",
        )


def _credential(spec: Spec, context: PlanContext) -> None:
    need = context.needs.get("registry_credential")
    if need is None or need.spec is None:
        return
    reached = need.spec.namespaces
    missing = [each for each in dict.fromkeys((spec.namespace, spec.plugin_namespace)) if each not in reached]
    if need.spec.cluster != spec.cluster or missing:
        raise Refusal(
            f"{need.key} does not reach {', '.join(missing) or spec.cluster}",
            field="registry_credential",
            why="the webhook's and the plug-in's pods pull with it",
            next="add the namespaces there, or name one for that cluster",
        )
    built = context.needs.get("images.built.client")
    client = built.spec.image if built is not None and built.spec is not None else spec.image("client")
    named = {f"namespaces.{number}": each for number, each in enumerate(spec.namespaces)} | {
        f"quotas.{number}.namespace": each.namespace for number, each in enumerate(spec.quotas)
    }
    users = {
        real_name(each, spec.cluster, context.needs.get(field)): each
        for field, each in named.items()
        if each not in (*SYSTEMS, spec.namespace, spec.plugin_namespace)
    }
    if host_of(client) == host_of(need.spec.server) and (
        late := [real for real, each in users.items() if not {real, each} & {*reached}]
    ):
        raise Refusal(
            f"{need.key} does not reach {', '.join(late)}",
            field="registry_credential",
            why=f"pods with GPUs pull the client image {client} in their own namespaces",
            next=(
                f"add {', '.join(late)} to its namespaces; the pods name it in imagePullSecrets, or their "
                "service account does"
            ),
        )


def host_of(image: str) -> str:
    """The registry of an image, or of a credential."""
    return image.removeprefix("https://").partition("/")[0]

"""The objects of a device plug-in as in its deployment files, with the fields that current clusters require.
Pure.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from bfinfra.formats.yaml import dumped
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Nodes, Spec, What
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import CERTIFICATE
from bfinfra.kinds.cluster.token_secret.spec import FORMS
from bfinfra.model.device_plugin import ALLOCATED, SYSTEM, Client
from bfinfra.model.records import dataclass

Manifest = dict[str, Any]
PLUGIN, WEBHOOK, ACCOUNT = (
    "bitfusion-cli-device-plugin",
    "bitfusion-webhook-deployment",
    "bwki-webhook-deployment",
)
SERVICE, SIDECAR, CLIENTS, QUOTA = (
    "bwki-webhook-svc",
    "bwki-webhook-configmap",
    "bwki-bitfusion-client-configmap",
    "bitfusion-quota",
)
RUNNING, ASKING = (
    ("DaemonSet", "Deployment"),
    ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
)
NAMES = dict(
    zip(
        ASKING,
        (
            ("validation.bitfusion.io-cfg", "bwkival.bitfusion.io"),
            ("bwki-webhook-cfg", "bwkimua.bitfusion.io"),
        ),
        strict=True,
    )
)
"""ConfigMap and webhook."""
OF_CLUSTER = (ACCOUNT, *(name for name, _ in NAMES.values()))
"""Names of the objects without a namespace."""
RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io/v1"
NOTE = "bfinfra.io/certificate"
"""Annotation of the webhook's pods: the certificate that they read at their start."""
CONFIG = "bfinfra.io/config"
"""Annotation of the webhook's pods: a digest of the release and of the ConfigMaps, which they read at their
start only.
"""
LISTENS = 8443
REVIEWS = {"/mutate": ["v1beta1"], "/validate": ["v1"]}
"""The AdmissionReview versions that each path answers correctly: answers of /mutate lack apiVersion and kind,
which v1 requires; /validate always answers with v1.
"""
MB = 1_000_000


SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
"""With a container's name appended, the annotation that confines it where pods have no `seccompProfile`:
before Kubernetes 1.19.
"""


@dataclass(frozen=True)
class Values:
    """The values for the objects.

    Namespaces by their names in the cluster; `spaces`: as written → in the cluster; `pull`: image pull
    Secret. `built`: plugin, webhook or client → name of the image that the site builds. `seccomp`: whether
    the cluster's pods have `seccompProfile`. `config`: the digest for the annotation CONFIG, "" for none.
    `certificate`: fingerprint of the certificate that the webhook must show; `bundle`: base64 of the
    authorities that the API server must trust.
    """

    namespace: str
    plugin_namespace: str
    spaces: Mapping[str, str] = field(default_factory=dict)
    pull: str = ""
    config: str = ""
    certificate: str = ""
    bundle: str = ""
    built: Mapping[str, str] = field(default_factory=dict)
    seccomp: bool = True


@dataclass(frozen=True)
class Rendered:
    """One object to send. `digest`: of everything that the site decides, without certificates and CONFIG."""

    manifest: Manifest
    digest: str


def render(spec: Spec, values: Values) -> tuple[Rendered, ...]:
    """The objects in the order of their creation; webhook configurations come last."""
    bare = _objects(spec, replace(values, config="", certificate="", bundle=""))
    texts = (json.dumps(each, sort_keys=True, separators=(",", ":")) for each in bare)
    return tuple(
        Rendered(each, hashlib.sha256(text.encode()).hexdigest())
        for each, text in zip(_objects(spec, values), texts, strict=True)
    )


def config_of(spec: Spec, values: Values) -> str:
    """The digest for the annotation CONFIG."""
    read = [each["data"] for each in _read_at_start(spec, values)]
    return hashlib.sha256(json.dumps([spec.version, read], sort_keys=True).encode()).hexdigest()[:32]


def host_names(namespace: str) -> tuple[str, ...]:
    """The names of the webhook's Service for its certificate; the API server checks the last one."""
    return (SERVICE, f"{SERVICE}.{namespace}", f"{SERVICE}.{namespace}.svc")


def _objects(spec: Spec, values: Values) -> list[Manifest]:
    quotas = [_quota(values.spaces[each.namespace], each.shares) for each in spec.quotas]
    return [
        *_access(spec, values),
        *_read_at_start(spec, values),
        _service(spec, values),
        *quotas,
        _daemon_set(spec, values),
        _deployment(spec, values),
        _asking(ASKING[0], "/validate", spec, values),
        _asking(ASKING[1], "/mutate", spec, values),
    ]


def _read_at_start(spec: Spec, values: Values) -> list[Manifest]:
    """The ConfigMaps."""
    return [_sidecar(spec, values), *([_clients(spec, values)] if spec.release.clients else [])]


def _object(api_version: str, kind: str, name: str, namespace: str = "", **fields: object) -> Manifest:
    space = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, **space, "labels": {"app": "bwki"}},
        **fields,
    }


def _image(spec: Spec, values: Values, what: What) -> str:
    return values.built.get(what) or spec.image(what)


def _access(spec: Spec, values: Values) -> list[Manifest]:
    """The privileges that the webhook's code needs: to copy the token's Secrets to where a pod needs them,
    and to read what nodes have.
    """
    rules = [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "verbs": ["get"],
            "resourceNames": list(FORMS[spec.release.form]),
        },
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    ]
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": ACCOUNT}
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": values.namespace}]
    return [
        _object("v1", "ServiceAccount", ACCOUNT, values.namespace),
        _object(f"{RBAC}/v1", "ClusterRole", ACCOUNT, rules=rules),
        _object(f"{RBAC}/v1", "ClusterRoleBinding", ACCOUNT, roleRef=role, subjects=subjects),
    ]


@functools.cache
def _template(name: str) -> str:
    return (Path(__file__).parent / "sidecar" / f"{name}.yaml").read_text()


def _sidecar(spec: Spec, values: Values) -> Manifest:
    text = _template(spec.release.sidecar).replace("CLIENT_IMAGE", _image(spec, values, "client"))
    return _object("v1", "ConfigMap", SIDECAR, values.namespace, data={"sidecarconfig.yaml": text})


def _clients(spec: Spec, values: Values) -> Manifest:
    text = _listed(spec.packages)
    return _object("v1", "ConfigMap", CLIENTS, values.namespace, data={"bitfusion-client-config.yaml": text})


@functools.cache
def _listed(packages: tuple[Client, ...]) -> str:
    listed = [
        {
            "BitfusionVersion": each.version,
            "OSVersion": each.os,
            "BinaryPath": f"/bitfusion/{each.folder}/usr/bin/bitfusion",
            "EnvVariable": f"/bitfusion/{each.folder}/{each.libraries}{each.inherits}",
        }
        for each in packages
    ]
    return dumped({"BitfusionClients": listed}, allow_unicode=False)


def _service(spec: Spec, values: Values) -> Manifest:
    ports = [{"name": "https", "protocol": "TCP", "port": spec.port, "targetPort": LISTENS}]
    return _object(
        "v1", "Service", SERVICE, values.namespace, spec={"ports": ports, "selector": {"app": "bwki"}}
    )


def _quota(namespace: str, shares: int) -> Manifest:
    return _object(
        "v1", "ResourceQuota", QUOTA, namespace, spec={"hard": {f"requests.{ALLOCATED}": str(shares)}}
    )


def _pull(values: Values) -> Manifest:
    return {"imagePullSecrets": [{"name": values.pull}]} if values.pull else {}


def _on(nodes: Nodes) -> Manifest:
    """The pod fields that keep pods on these nodes."""
    tolerations = [each.model_dump(exclude_defaults=True) for each in nodes.tolerations]
    return {
        **({"nodeSelector": nodes.selector} if nodes.selector else {}),
        **({"tolerations": tolerations} if tolerations else {}),
    }


def _daemon_set(spec: Spec, values: Values) -> Manifest:
    env = {
        "SOCKET_NAME": "bitfusion.io",
        "INTERVAL": str(spec.interval),
        "RESOURCE_NAME": ALLOCATED,
        "RESOURCE_NUMS": str(spec.shares),
    }
    container = {
        "name": "bitfusion-device-plugin",
        "image": _image(spec, values, "plugin"),
        "securityContext": {"privileged": True},
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "volumeMounts": [{"name": "kubelet-socket", "mountPath": "/var/lib/kubelet"}],
    }
    pod = {
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        **_pull(values),
        **_on(spec.plugin_nodes),
        "containers": [container],
        "volumes": [{"name": "kubelet-socket", "hostPath": {"path": spec.kubelet_folder}}],
    }
    labels = {"app": "bitfusion-device-plugin", "tier": "node"}
    return _object(
        "apps/v1",
        "DaemonSet",
        PLUGIN,
        values.plugin_namespace,
        spec={"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    )


def _deployment(spec: Spec, values: Values) -> Manifest:
    mounts = {"webhook-certs": "certs", "webhook-config": "config"}
    volumes: list[Manifest] = [
        {"name": "webhook-certs", "secret": {"secretName": CERTIFICATE}},
        {"name": "webhook-config", "configMap": {"name": SIDECAR}},
    ]
    args = ["-sidecarCfgFile=/etc/webhook/config/sidecarconfig.yaml"]
    if spec.release.clients:
        mounts["webhook-bitfusion-client-config"] = "bitfusion-client-config"
        volumes.append({"name": "webhook-bitfusion-client-config", "configMap": {"name": CLIENTS}})
        args.append(
            "-bitfusionClientConfig=/etc/webhook/bitfusion-client-config/bitfusion-client-config.yaml"
        )
    container = {
        "name": "bwki",
        "image": _image(spec, values, "webhook"),
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "TOTAL_GPU_MEMORY", "value": str(spec.total_gpu_memory // MB)}],
        "args": [
            *args,
            "-tlsCertFile=/etc/webhook/certs/cert.pem",
            "-tlsKeyFile=/etc/webhook/certs/key.pem",
            "-alsologtostderr",
            "-v=4",
        ],
        "ports": [{"name": "https", "containerPort": LISTENS, "protocol": "TCP"}],
        "readinessProbe": {"tcpSocket": {"port": LISTENS}, "periodSeconds": 5},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            **({"seccompProfile": {"type": "RuntimeDefault"}} if values.seccomp else {}),
        },
        "volumeMounts": [
            {"name": name, "mountPath": f"/etc/webhook/{folder}", "readOnly": True}
            for name, folder in mounts.items()
        ],
    }
    notes = {NOTE: values.certificate, **({CONFIG: values.config} if values.config else {})}
    notes |= {} if values.seccomp else {f"{SECCOMP}bwki": "runtime/default"}
    metadata = {"labels": {"app": "bwki"}, "annotations": notes}
    template = {
        "metadata": metadata,
        "spec": {
            "serviceAccountName": ACCOUNT,
            **_pull(values),
            **_on(spec.webhook_nodes),
            "containers": [container],
            "volumes": volumes,
        },
    }
    return _object(
        "apps/v1",
        "Deployment",
        WEBHOOK,
        values.namespace,
        spec={"replicas": spec.replicas, "selector": {"matchLabels": {"app": "bwki"}}, "template": template},
    )


def _asking(kind: str, path: str, spec: Spec, values: Values) -> Manifest:
    name, hook = NAMES[kind]
    service = {"namespace": values.namespace, "name": SERVICE, "path": path, "port": spec.port}
    return _object(
        ADMISSION,
        kind,
        name,
        webhooks=[
            {
                "name": hook,
                "admissionReviewVersions": REVIEWS[path],
                "sideEffects": "None" if path == "/validate" else "NoneOnDryRun",
                "timeoutSeconds": 5,
                "failurePolicy": spec.failure_policy,
                "clientConfig": {"service": service, "caBundle": values.bundle},
                "namespaceSelector": {"matchExpressions": [_selected(spec, values)]},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                        "scope": "Namespaced",
                    }
                ],
            }
        ],
    )


def _selected(spec: Spec, values: Values) -> Manifest:
    """The namespaces whose pods the webhook gets: never the system's, nor the plug-in's own. check() refuses
    a choice that leaves none.
    """
    key = "kubernetes.io/metadata.name"
    if spec.namespaces:
        chosen = (values.spaces[each] for each in spec.namespaces)
        return {
            "key": key,
            "operator": "In",
            "values": shown(chosen, values.namespace, values.plugin_namespace),
        }
    return {
        "key": key,
        "operator": "NotIn",
        "values": list(dict.fromkeys((*SYSTEM, values.namespace, values.plugin_namespace))),
    }


def shown(chosen: Iterable[str], *own: str) -> list[str]:
    """The names of chosen namespaces, in the cluster, whose pods the webhook gets: without the system's and
    the plug-in's own.
    """
    return [each for each in chosen if each not in (*SYSTEM, *own)]

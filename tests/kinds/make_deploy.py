"""What `make deploy` of each release of the device plug-in leaves in a cluster: object for object as its
deployment files have it.
"""

from __future__ import annotations

import base64
from typing import Any

import yaml
from waiting import until

from bfinfra.backends import authority
from bfinfra.backends.kubernetes import ClusterClient
from bfinfra.kinds.cluster.token_secret.spec import FORMS
from bfinfra.model.device_plugin import RELEASES

REPOSITORY = "docker.io/bitfusiondeviceplugin"
ADMISSION = "admissionregistration.k8s.io/v1"


def make_deploy(cluster: ClusterClient, version: str) -> None:
    """All of it, the webhook's pod ready; the token's Secrets as well, as the document has them made
    before.
    """
    release, clients = RELEASES[version], bool(RELEASES[version].clients)
    ca, key = authority.make("the cluster", 3650)
    certificate, own = authority.issue(
        ca, key, ("bwki-webhook-svc", "bwki-webhook-svc.bwki", "bwki-webhook-svc.bwki.svc"), 365
    )
    for name, files in FORMS[release.form].items():
        cluster.create(
            _object(
                "v1",
                "Secret",
                name,
                "kube-system",
                type="Opaque",
                data={file: base64.b64encode(b"the token before").decode() for file in files},
            )
        )
    cluster.create(_daemons(version))
    cluster.create(_object("v1", "Namespace", "bwki"))
    data = {"cert.pem": base64.b64encode(certificate).decode(), "key.pem": base64.b64encode(own).decode()}
    cluster.create(_object("v1", "Secret", "bwki-webhook-certs", "bwki", type="Opaque", data=data))
    until(lambda: cluster.get("v1", "ServiceAccount", "default", "bwki"))
    cluster.create(_deployment(version, clients=clients))
    ports = [{"port": 443, "targetPort": 8443}]
    cluster.create(
        _object(
            "v1",
            "Service",
            "bwki-webhook-svc",
            "bwki",
            {"app": "bwki"},
            spec={"ports": ports, "selector": {"app": "bwki"}},
        )
    )
    cluster.create(
        _object(
            "v1",
            "ConfigMap",
            "bwki-webhook-configmap",
            "bwki",
            data={"sidecarconfig.yaml": yaml.safe_dump(_sidecar(version))},
        )
    )
    cluster.create(_object("v1", "ServiceAccount", "bwki-webhook-deployment", "bwki"))
    cluster.create(
        _object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            "bwki-webhook-deployment",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            subjects=[{"kind": "ServiceAccount", "name": "default", "namespace": "bwki"}],
        )
    )
    # a hook that fails closed refuses its own pod, where that comes after it
    until(lambda: cluster.list("v1", "Pod", "bwki"))
    for kind, name, hook in _hooks(base64.b64encode(ca).decode()):
        cluster.create(
            _object(
                ADMISSION,
                kind,
                name,
                labels={"app": "bwki" if kind.startswith("V") else "vmware-injector"},
                webhooks=[hook],
            )
        )
    if clients:
        listed = [
            {
                "BitfusionVersion": each.version,
                "OSVersion": each.os,
                "BinaryPath": f"/bitfusion/{each.folder}/usr/bin/bitfusion",
                "EnvVariable": f"/bitfusion/{each.folder}/{each.libraries}{each.inherits}",
            }
            for each in release.clients
        ]
        text = yaml.safe_dump({"BitfusionClients": listed})
        cluster.create(
            _object(
                "v1",
                "ConfigMap",
                "bwki-bitfusion-client-configmap",
                "bwki",
                data={"bitfusion-client-config.yaml": text},
            )
        )
    until(
        lambda: (
            (
                (cluster.get("apps/v1", "Deployment", "bitfusion-webhook-deployment", "bwki") or {}).get(
                    "status"
                )
                or {}
            ).get("availableReplicas")
            == 1
        )
    )


def _object(
    api: str, kind: str, name: str, namespace: str = "", labels: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    metadata = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        **({"labels": labels} if labels else {}),
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def _daemons(version: str) -> dict[str, Any]:
    env = {
        "SOCKET_NAME": "bitfusion.io",
        "INTERVAL": "10",
        "RESOURCE_NAME": "bitfusion.io/gpu",
        "RESOURCE_NUMS": "1000",
    }
    folders = {"kubelet-socket": "/var/lib/kubelet", "pki": "/etc/kubernetes/pki"}
    container = {
        "name": "bitfusion-device-plugin",
        "image": f"{REPOSITORY}/bitfusion-device-plugin:{version}",
        "securityContext": {"privileged": True},
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in folders.items()],
    }
    pod = {
        "hostNetwork": True,
        "containers": [container],
        "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in folders.items()],
    }
    return _object(
        "apps/v1",
        "DaemonSet",
        "bitfusion-cli-device-plugin",
        "kube-system",
        spec={
            "selector": {"matchLabels": {"tier": "node"}},
            "template": {"metadata": {"labels": {"tier": "node"}}, "spec": pod},
        },
    )


def _deployment(version: str, *, clients: bool) -> dict[str, Any]:
    args = [
        "-sidecarCfgFile=/etc/webhook/config/sidecarconfig.yaml",
        "-tlsCertFile=/etc/webhook/certs/cert.pem",
        "-tlsKeyFile=/etc/webhook/certs/key.pem",
        "-alsologtostderr",
        "-v=4",
        "2>&1",
    ]
    mounts = {"webhook-certs": "certs", "webhook-config": "config"}
    volumes: list[dict[str, Any]] = [
        {"name": "webhook-certs", "secret": {"secretName": "bwki-webhook-certs"}},
        {"name": "webhook-config", "configMap": {"name": "bwki-webhook-configmap"}},
    ]
    more: dict[str, Any] = {}
    if clients:
        args.insert(
            1, "-bitfusionClientConfig=/etc/webhook/bitfusion-client-config/bitfusion-client-config.yaml"
        )
        mounts["webhook-bitfusion-client-config"] = "bitfusion-client-config"
        volumes.append(
            {
                "name": "webhook-bitfusion-client-config",
                "configMap": {"name": "bwki-bitfusion-client-configmap"},
            }
        )
        more = {"env": [{"name": "TOTAL_GPU_MEMORY", "value": "0"}]}
    container = {
        "name": "bwki",
        "image": f"{REPOSITORY}/bitfusion-webhook:{version}",
        "imagePullPolicy": "IfNotPresent",
        "args": args,
        **more,
        "volumeMounts": [
            {"name": name, "mountPath": f"/etc/webhook/{folder}"} for name, folder in mounts.items()
        ],
    }
    template = {
        "metadata": {"labels": {"app": "bwki"}},
        "spec": {"containers": [container], "volumes": volumes},
    }
    return _object(
        "apps/v1",
        "Deployment",
        "bitfusion-webhook-deployment",
        "bwki",
        {"app": "bwki"},
        spec={"replicas": 1, "selector": {"matchLabels": {"app": "bwki"}}, "template": template},
    )


def _sidecar(version: str) -> dict[str, Any]:
    """Less than upstream's: an init container, and the token's Secrets."""
    volumes = [
        {"name": "bitfusion-distro", "emptyDir": {}},
        *(
            {"name": f"token-{number}", "secret": {"secretName": name}}
            for number, name in enumerate(FORMS[RELEASES[version].form])
        ),
    ]
    return {
        "initContainers": [
            {
                "name": "populate",
                "image": f"{REPOSITORY}/bitfusion-client:{version}",
                "command": ["/bin/bash", "-c", "cp -r BITFUSION_CLIENT_OPT_PATH /opt"],
            }
        ],
        "containers": [
            {
                "name": "sidecar-container",
                "image": "container",
                "volumeMounts": [{"name": "bitfusion-distro", "mountPath": "/bitfusion"}],
            }
        ],
        "volumes": volumes,
    }


def _hooks(bundle: str) -> list[tuple[str, str, dict[str, Any]]]:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}

    def config(path: str) -> dict[str, Any]:
        return {
            "service": {"name": "bwki-webhook-svc", "namespace": "bwki", "path": path},
            "caBundle": bundle,
        }

    validating = {
        "name": "bwkival.bitfusion.io",
        "clientConfig": config("/validate"),
        "admissionReviewVersions": ["v1", "v1beta1"],
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "rules": [rule],
    }
    # v1beta1's own defaults, as a server shows the object in v1: failurePolicy Ignore, 30 s; sideEffects
    # Unknown can't be written there any more
    mutating = {
        "name": "bwkimua.bitfusion.io",
        "clientConfig": config("/mutate"),
        "admissionReviewVersions": ["v1beta1"],
        "sideEffects": "NoneOnDryRun",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 30,
        "rules": [rule],
    }
    return [
        ("ValidatingWebhookConfiguration", "validation.bitfusion.io-cfg", validating),
        ("MutatingWebhookConfiguration", "bwki-webhook-cfg", mutating),
    ]

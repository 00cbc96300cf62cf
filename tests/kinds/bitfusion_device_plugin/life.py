"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.given import other
from rights.life import Life

from bfinfra.sandbox import Running

MARKED = (
    "api/v1/serviceaccounts",
    "api/v1/configmaps",
    "api/v1/services",
    "apis/apps/v1/deployments",
    "apis/apps/v1/daemonsets",
    "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
)


def relabel(sandbox: Running) -> None:
    """Somebody gives all of the plug-in's objects another label."""
    kube = other(sandbox)
    for path in MARKED:
        for each in kube.call("GET", f"/{path}")["items"]:
            if (each["metadata"].get("labels") or {}).get("app") == "bwki":
                start, _, plural = path.rpartition("/")
                space = (
                    f"/namespaces/{each['metadata']['namespace']}" if "namespace" in each["metadata"] else ""
                )
                kube.call(
                    "PATCH",
                    f"/{start}{space}/{plural}/{each['metadata']['name']}",
                    {"metadata": {"labels": {"app": "another"}}},
                )


def overwrite_certificates(sandbox: Running) -> None:
    """Somebody overwrites the Secrets with its certificates."""
    kube, home = other(sandbox), "/api/v1/namespaces/bwki/secrets"
    for each in kube.call("GET", home)["items"]:
        kube.call(
            "PATCH", f"{home}/{each['metadata']['name']}", {"data": dict.fromkeys(each["data"], "eA==")}
        )


LIFE = Life(
    changes=(("{enforce: privileged}", "{enforce: privileged}, labels: {team: a}"),),
    drifts=(relabel, overwrite_certificates),
    reads_inside=True,
)

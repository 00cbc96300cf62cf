"""The Job for one check of a Site. Its pod has no rights in the cluster: the site is in an annotation, and
the result in the termination message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bfinfra.model.records import dataclass
from bfinfra.operator.crd import GROUP
from bfinfra.operator.decide import unhurried
from bfinfra.operator.declared import refusal
from bfinfra.operator.desired import Desired
from bfinfra.operator.manifest import API
from bfinfra.operator.names import SITE as FILE
from bfinfra.render.schedule import MOUNT, SAFE, STATE

LABELS = {
    "app.kubernetes.io/name": "bfinfra",
    "app.kubernetes.io/component": "look",
    "app.kubernetes.io/managed-by": "bfinfra-operator",
}
UID, KEY, ORDER = f"{GROUP}/site-uid", f"{GROUP}/key", f"{GROUP}/order"
SITE, GENERATION, TRIGGER = f"{GROUP}/site", f"{GROUP}/generation", f"{GROUP}/watch-report"
RESULT = "/dev/termination-log"
VARIABLES, OWN, SCRATCH = "/variables", "/own", "/scratch"
LONGEST = 4 * 3600  # seconds for a check: it may upload an appliance
# seconds beyond the interval that an ended Job is kept, so that the next leader knows the last check
ENDED_JOBS_LAST = 600
LARGEST = 150 << 10  # bytes of a site without blanks: an object's annotations may have 256 KiB in all


@dataclass(frozen=True)
class Mould:
    """The common part of all Jobs. `pull`: names of image pull Secrets."""

    image: str
    pull: tuple[str, ...] = ()
    cpu: str = "100m"
    memory: str = "128Mi"
    most: str = "1Gi"


def site_text(wanted: Desired) -> str:
    """The site as a file: JSON, a line for each field. It is YAML as well, and a hundred times faster to
    write.
    """
    return json.dumps(wanted.site, indent=1, ensure_ascii=False)


def unfit(wanted: Desired) -> str:
    """Return why no Job is made for the Site, or ""."""
    if wanted.size > LARGEST:
        return f"the site has {wanted.size} bytes, and a Job can contain at most {LARGEST}; split the site"
    return refusal(wanted)


def manifest(wanted: Desired, name: str, mould: Mould) -> dict[str, Any]:
    """The Job `name`."""
    trigger = {TRIGGER: wanted.trigger} if wanted.trigger else {}
    labels = {**LABELS, UID: wanted.uid, KEY: wanted.key, ORDER: "destroy" if wanted.deleting else "keep"}
    owner = {
        "apiVersion": API,
        "kind": "Site",
        "name": wanted.name,
        "uid": wanted.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": wanted.namespace,
            "labels": labels,
            "annotations": {GENERATION: str(wanted.generation), **trigger},
            "ownerReferences": [owner],
        },
        "spec": {
            "backoffLimit": 1,
            "activeDeadlineSeconds": LONGEST,
            "ttlSecondsAfterFinished": unhurried(wanted) + ENDED_JOBS_LAST,
            "template": {
                "metadata": {"labels": labels, "annotations": {SITE: site_text(wanted)}},
                "spec": _pod(wanted, mould),
            },
        },
    }


def _pod(wanted: Desired, mould: Mould) -> dict[str, Any]:
    variables = [_source(name, given) for name, given in wanted.env.items()]
    state = {"persistentVolumeClaim": {"claimName": wanted.claim}} if wanted.claim else {"emptyDir": {}}
    container = {
        "name": "look",
        "image": mould.image,
        "args": _args(wanted),
        "terminationMessagePath": RESULT,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [
            {"name": "BFINFRA_STATE_HOME", "value": STATE},
            {"name": "HOME", "value": SCRATCH},  # no claim: what lies there would be the settings of programs
            {"name": "TMPDIR", "value": SCRATCH},
        ],
        "volumeMounts": [
            {"name": "site", "mountPath": MOUNT, "readOnly": True},
            {"name": "variables", "mountPath": VARIABLES, "readOnly": True},
            {"name": "own", "mountPath": OWN},
            {"name": "state", "mountPath": STATE},
            {"name": "scratch", "mountPath": SCRATCH},
        ],
        "resources": {
            "requests": {"cpu": mould.cpu, "memory": mould.memory},
            "limits": {"memory": mould.most},
        },
        "securityContext": SAFE,
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"imagePullSecrets": [{"name": name} for name in mould.pull]} if mould.pull else {}),
        "containers": [container],
        "volumes": [
            {"name": "site", "projected": {"defaultMode": 0o440, "sources": _sources(wanted)}},
            {"name": "variables", "projected": {"defaultMode": 0o440, "sources": variables}},
            {"name": "own", "emptyDir": {"medium": "Memory", "sizeLimit": "128Mi"}},  # secrets: on no disk
            {"name": "state", **state},
            {"name": "scratch", "emptyDir": {}},
        ],
    }


def _args(wanted: Desired) -> list[str]:
    args = [
        "operator",
        "job",
        "--site",
        f"{MOUNT}/{FILE}",
        "--variables",
        VARIABLES,
        "--own",
        f"{OWN}/site",
        "--result",
        RESULT,
        "--approval",
        str(wanted.approval),
    ]
    if wanted.approved:
        args += ["--approved", wanted.approved]
    if wanted.watched:
        args += ["--watched"]
    if wanted.deleting:
        return [*args, "--destroy"]
    known = (f"--known={each}".replace("$", "$$") for each in wanted.known)  # the kubelet expands $(NAME)
    return [*args, *(["--stood"] if wanted.existed else []), *known]


def _sources(wanted: Desired) -> list[dict[str, Any]]:
    """The sources of the site's folder, one for each file. A missing Secret keeps the pod waiting."""
    own = {
        "downwardAPI": {
            "items": [{"path": FILE, "fieldRef": {"fieldPath": f"metadata.annotations['{SITE}']"}}]
        }
    }
    return [own, *(_source(path, given) for path, given in wanted.files.items())]


def _source(path: str, given: Mapping[str, Any]) -> dict[str, Any]:
    way, ref = (
        ("secret", given["secretKeyRef"])
        if "secretKeyRef" in given
        else ("configMap", given["configMapKeyRef"])
    )
    return {way: {"name": ref["name"], "items": [{"key": ref["key"], "path": path}]}}

"""Scheduled drift checks: a line of a crontab, a CronJob with all it needs. Nothing is installed."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.formats import cron as crontab
from bfinfra.formats.yaml import dumped_all
from bfinfra.model.records import dataclass
from bfinfra.model.schedule import Schedule

LARGEST = 900 << 10  # bytes for a ConfigMap, with room for its names
MOUNT, STATE = "/site", "/state"
SAFE = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True)
class ScheduledCheck:
    """The command that is run. `program` and `sites`: absolute paths; `env`: the variables that the site
    refers to; `options`: the arguments that make the site's variant.
    """

    site: str
    program: str
    sites: tuple[str, ...]
    when: Schedule
    env: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of `drift`."""
        return (*self.options, *self.sites)

    @property
    def name(self) -> str:
        """The name of the unit, the CronJob and their files."""
        return f"bfinfra-drift-{self.site}".lower().replace("_", "-").replace(".", "-")

    @property
    def variables(self) -> str:
        """The file with the values of `env`, which only root can read."""
        return f"/etc/bfinfra/{self.site}.env"


def cron(check: ScheduledCheck) -> str:
    """One line of a user's crontab. cron mails what the check prints: only what is new. Raises Unwritable."""
    given = f"set -a; . {crontab.word(check.variables)}; set +a; " if check.env else ""
    words = (check.program, "drift", "--changes-only", *check.words)
    return crontab.line(check.when.cron, words, before=given)


def kubernetes(  # noqa: PLR0913 - what a CronJob is made of
    check: ScheduledCheck,
    image: str,
    files: Mapping[str, bytes],
    secrets: Mapping[str, str],
    *,
    namespace: str = "",
    claim: str = "",
) -> list[dict[str, Any]]:
    """ServiceAccount, ConfigMap and CronJob. `files`: path below the site's folder → content, the site's own
    first; `secrets`: path → key in the Secret.

    The user makes the Secret `name` with the variables and keys. `claim`: a volume claim for results of
    earlier checks.
    """
    home = {"namespace": namespace} if namespace else {}
    labels = {
        "app.kubernetes.io/name": "bfinfra",
        "app.kubernetes.io/component": "drift",
        "app.kubernetes.io/instance": check.name,
    }
    meta = {"name": check.name, **home, "labels": labels}
    keys = {path: f"file-{number}" for number, path in enumerate(files)}
    pod = _pod(check, image, _sources(check.name, keys, secrets), claim)
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": meta,
            "automountServiceAccountToken": False,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            **contents({keys[path]: content for path, content in files.items()}),
        },
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": _cronjob(check, labels, pod)},
    ]


def _sources(name: str, keys: Mapping[str, str], secrets: Mapping[str, str]) -> list[dict[str, Any]]:
    """The sources of the site's folder: the ConfigMap's files, and the Secret's."""
    sources: list[dict[str, Any]] = [
        {"configMap": {"name": name, "items": [{"key": key, "path": path} for path, key in keys.items()]}}
    ]
    if secrets:
        sources.append(
            {
                "secret": {
                    "name": name,
                    "items": [{"key": key, "path": path, "mode": 0o440} for path, key in secrets.items()],
                }
            }
        )
    return sources


def _container(check: ScheduledCheck, image: str, claim: str) -> dict[str, Any]:
    return {
        "name": "drift",
        "image": image,
        "args": ["drift", *(["--changes-only"] if claim else ["--forget"]), *check.words],
        "env": [
            {"name": "BFINFRA_STATE_HOME", "value": STATE},
            {"name": "HOME", "value": STATE},
            *(_from_secret(name, check.name) for name in check.env),
        ],
        "volumeMounts": [
            {"name": "site", "mountPath": MOUNT, "readOnly": True},
            {"name": "state", "mountPath": STATE},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": SAFE,
    }


def _pod(check: ScheduledCheck, image: str, sources: list[dict[str, Any]], claim: str) -> dict[str, Any]:
    return {
        "serviceAccountName": check.name,
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(check, image, claim)],
        "volumes": [
            {"name": "site", "projected": {"sources": sources}},
            {
                "name": "state",
                **({"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}),
            },
        ],
    }


def _cronjob(check: ScheduledCheck, labels: Mapping[str, str], pod: Mapping[str, object]) -> dict[str, Any]:
    job = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": max(check.when.seconds, 300),
        "ttlSecondsAfterFinished": 86400,
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {
        "schedule": check.when.cron,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 300,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {"metadata": {"labels": labels}, "spec": job},
    }


def contents(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The data of a ConfigMap: text as it is, the rest in base64."""
    text = {key: content.decode() for key, content in files.items() if _is_text(content)}
    binary = {key: base64.b64encode(content).decode() for key, content in files.items() if key not in text}
    return ({"data": text} if text else {}) | ({"binaryData": binary} if binary else {})


def bound(check: ScheduledCheck, rules: Sequence[Mapping[str, Any]], namespace: str) -> list[dict[str, Any]]:
    """A user's roles and bindings, changed to the check's account."""
    account = [{"kind": "ServiceAccount", "name": check.name, "namespace": namespace}]
    return [
        {**each, "metadata": {**each["metadata"], "name": check.name}}
        | (
            {"subjects": account, "roleRef": {**each["roleRef"], "name": check.name}}
            if "subjects" in each
            else {}
        )
        for each in rules
    ]


def manifest(found: Sequence[Mapping[str, object]]) -> str:
    """The YAML that kubectl applies."""
    return dumped_all(dict(each) for each in found).rstrip()


def _from_secret(name: str, secret: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False

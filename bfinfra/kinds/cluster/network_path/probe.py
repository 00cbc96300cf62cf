"""The Job whose pod tries each address, and its result."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.backends.kubernetes.marks import SITE, notes
from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.pods import ends, job_phase, pulling, stuck
from bfinfra.kinds.cluster.network_path.spec import PROBE, Probe
from bfinfra.model.records import dataclass

TRIED = "bfinfra.io/tried"
"""The annotation with the digest of what was tried."""
NOBODY = 65534
NOT_REACHED = re.compile(r"^(\S+) not reached", re.MULTILINE)
SCRIPT = """\
end=$(($(date +%s) + $1)); shift; pids=; code=0; zero=-z; run=
command -v nc > /dev/null || { echo "there is no nc in this image"; exit 2; }
case "$(nc -z 2>&1)" in *"invalid option"*) zero=; run="-e true" ;; esac
try() {
  until said=$(nc $zero -w 3 "${1%:*}" "${1##*:}" $run 2>&1 < /dev/null); do
    [ "$(date +%s)" -lt "$end" ] || { printf '%.200s\\n' "$1 not reached${said:+: $said}"; return 1; }
    sleep 1
  done
  echo "$1 reached"
}
for path; do try "$path" & pids="$pids $!"; done
for pid in $pids; do wait "$pid" || code=1; done
exit $code
"""
"""Tries all addresses in parallel, each until it is reached or the time is over. If netcat has no -z
(Debian's busybox), it runs `true` in the connection instead.
"""


@dataclass(frozen=True)
class Probed:
    """A probe's Job. `phase`: waiting, running, finished or failed; `why`: more about it; `unreached`: the
    paths that its pod did not reach. `tried`: the digest of what it tries; `paths`: `address:port`; `fresh`:
    this run started it.
    """

    job: str
    phase: str
    tried: str
    paths: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    why: str = ""
    going: bool = False
    fresh: bool = False


def name_of(path: str) -> str:
    """The Job's name."""
    return f"{PROBE}{path}"


def manifest(  # noqa: PLR0913 - all that a probe is made of
    name: str,
    namespace: str,
    site: str,
    pods: Mapping[str, str],
    probe: Probe,
    paths: Sequence[str],
    pull: str,
) -> dict[str, Any]:
    """The Job, without a mark. Its pod fits the Pod Security level `restricted`. `pull`: the Secret to pull
    its image with, or "".
    """
    small = {"cpu": "100m", "memory": "32Mi"}
    container = {
        "name": "probe",
        "image": probe.image,
        "command": ["sh", "-c", SCRIPT, "probe", str(probe.patience), *paths],
        "resources": {"requests": small, "limits": small},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [container],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"imagePullSecrets": [{"name": pull}]} if pull else {}),
    }
    digest = hashlib.sha256(
        json.dumps([probe.image, probe.patience, sorted(pods.items()), list(paths), pull]).encode()
    ).hexdigest()
    template = {"metadata": {"labels": {**pods, SITE: site}}, "spec": pod}
    metadata = {"name": name_of(name), "namespace": namespace, "annotations": {TRIED: digest}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"backoffLimit": 0, "template": template},
    }


def read(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], *, fresh: bool) -> Probed:
    """The Job's progress, and what its pod found."""
    metadata, (phase, why) = job["metadata"], job_phase(job)
    if phase in ("waiting", "failed"):
        words = [str(end.get("message") or end.get("reason") or "") for pod in pods for end in ends(pod)]
        output, hindrance = "\n".join(words), next((found for pod in pods if (found := stuck(pod))), "")
        unreached = tuple(safe(each, 80) for each in NOT_REACHED.findall(output))
        why = (
            hindrance
            or next((found for pod in pods if (found := pulling(pod))), "")
            or (output.strip() if phase == "failed" else "")
            or next((_pending(pod) for pod in pods), "")
            or why
        )
        phase = "failed" if hindrance else phase
    else:
        unreached = ()
    return Probed(
        metadata["name"],
        phase,
        notes(job).get(TRIED, ""),
        _paths(job),
        unreached,
        safe(why, 300),
        bool(metadata.get("deletionTimestamp")),
        fresh,
    )


def _pending(pod: Mapping[str, Any]) -> str:
    """Return why no node takes the pod, or what killed it."""
    status = pod.get("status") or {}
    unscheduled = (
        c.get("message") or ""
        for c in status.get("conditions") or ()
        if c.get("type") == "PodScheduled" and c.get("status") == "False"
    )
    return str(status.get("message") or next(unscheduled, "") or "")


def _paths(job: Mapping[str, Any]) -> tuple[str, ...]:
    spec = ((job.get("spec") or {}).get("template") or {}).get("spec") or {}
    command = ((spec.get("containers") or [{}])[0]).get("command") or ()
    return tuple(safe(each, 80) for each in command[5:])

"""The API of the cluster that this process itself runs in: where it is and who a pod is there, as its service
account's folder says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bfinfra.backends.kubernetes.access import Access, expiry
from bfinfra.model.errors import Refusal
from bfinfra.model.redact import hide
from bfinfra.model.sources import small
from bfinfra.model.trust import Trust

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def enter(folder: Path = FOLDER, env: Mapping[str, str] = os.environ) -> Access:
    """Read anew each time: the kubelet puts another token there before one ends. Refusal where this is no
    pod, or one without an account.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise Refusal(
            "this does not run in a cluster",
            why="KUBERNETES_SERVICE_HOST is not set",
            next="name a kubeconfig with --kubeconfig FILE",
        )
    token = hide(_text(folder / "token").strip())
    return Access(
        f"https://{f'[{host}]' if ':' in host else host}:{port}",
        Trust(ca_pem=_text(folder / "ca.crt")),
        token=token,
        expires=expiry(token),
    )


def namespace(folder: Path = FOLDER) -> str:
    """The pod's own; "" where this is none."""
    try:
        return small(folder / "namespace").strip()
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return small(path)
    except OSError as error:
        raise Refusal(
            "the pod's service account can't be read",
            why=f"{path}: {error.strerror}",
            next="let automountServiceAccountToken be true for it",
        ) from None

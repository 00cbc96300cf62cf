"""The API of the cluster that this process runs in: its address and the pod's token, from the service
account's folder.
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
    """Read again each time: the kubelet replaces the token before it expires. Raises Refusal outside of a
    pod, or in one without an account.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise Refusal(
            "this does not run in a cluster",
            why="KUBERNETES_SERVICE_HOST is not set",
            next="give a kubeconfig with --kubeconfig FILE",
        )
    token = hide(_text(folder / "token").strip(), passing=True)
    return Access(
        f"https://{f'[{host}]' if ':' in host else host}:{port}",
        Trust(ca_pem=_text(folder / "ca.crt")),
        token=token,
        expires=expiry(token),
    )


def namespace(folder: Path = FOLDER) -> str:
    """The pod's own namespace; "" outside of a pod."""
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

"""A kubeconfig: one cluster, one user with a token, the CA's certificate in the file itself."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path


def make_kubeconfig(path: Path, *, name: str, address: str, token: str, ca_pem: str) -> None:
    """For the administrator of the cluster whose API is at `address` ("host:port"); readable by the owner
    only.
    """
    authority = base64.b64encode(ca_pem.encode()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "preferences": {},
        "clusters": [
            {
                "name": name,
                "cluster": {"server": f"https://{address}", "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": f"{name}-admin", "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin"}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(config, file, indent=1)

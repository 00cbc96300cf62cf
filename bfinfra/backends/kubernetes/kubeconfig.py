"""Reads a kubeconfig. Nothing in it is executed, verification can't be switched off, the file is never
written.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bfinfra.backends.kubernetes.access import Access, expiry
from bfinfra.model import foreign
from bfinfra.model.errors import Refusal
from bfinfra.model.redact import hide
from bfinfra.model.secret import Secret
from bfinfra.model.sources import expanded, small
from bfinfra.model.trust import Trust

SERVER = re.compile(
    r"https://([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]{0,1000})?"
)
TOKEN = re.compile(r"[!-~]*")
CLUSTER_KEYS = {
    "insecure-skip-tls-verify": "it would switch verification off",
    "proxy-url": "",
    "tls-server-name": "",
}
SECRET_KEYS = ("token", "password", "client-key-data")
USER_KEYS = {
    "exec": "it would run a program that the file names",
    "auth-provider": "it would run a plug-in",
    "as": "",
    "as-groups": "",
    "username": "Kubernetes knows no passwords since 1.19",
    "password": "Kubernetes knows no passwords since 1.19",
}


def read(secret: Secret, context: str = "") -> Access:
    """The access that a kubeconfig grants in `context` ("": its current one). Raises Refusal with what in it
    can't be used; SecretMissing.
    """
    folder = secret.sources.path(str(secret.target)).parent if secret.way == "file" else None
    config = _parse(secret.document(), secret)
    name = context or config.get("current-context")
    if not name:
        raise _refusal(secret, "it has no current-context", "write context: with one of its contexts")
    chosen = _named(config, "contexts", "context", name, secret)
    cluster = _named(config, "clusters", "cluster", chosen.get("cluster"), secret)
    user = _named(config, "users", "user", chosen.get("user"), secret)
    _check(cluster, CLUSTER_KEYS, secret)
    _check(user, USER_KEYS, secret)
    ca = _material(cluster, "certificate-authority", folder, secret)
    token = _token(user, folder, secret)
    identity = (
        _material(user, "client-certificate", folder, secret),
        hide(_material(user, "client-key", folder, secret)),
    )
    if not token and not all(identity):
        raise _refusal(
            secret,
            "its user has neither a token nor a client certificate with its key",
            "use a kubeconfig with a token",
        )
    url, trust = _url(cluster, secret), Trust(ca_pem=ca) if ca else Trust()
    return Access(url, trust, token=token, identity=None if token else identity, expires=expiry(token))


def _parse(text: str, secret: Secret) -> Mapping[str, Any]:
    try:
        config = next(iter(foreign.documents(text)), None)
    except foreign.Unfit as error:
        raise _refusal(secret, str(error), "check the reference") from None
    if not isinstance(config, dict) or config.get("kind") != "Config":
        raise _refusal(secret, "it is not of kind Config", "check the reference")
    _hide(config)
    return config


def _hide(config: Mapping[str, object]) -> None:
    """By what all of its users enter."""
    users = config.get("users")
    for each in users if isinstance(users, list) else ():
        user = each.get("user") if isinstance(each, dict) else None
        if isinstance(user, dict):
            for name in SECRET_KEYS:
                hide(str(user.get(name) or ""), passing=name == "token")


def _named(
    config: Mapping[str, Any], section: str, field: str, name: Any, secret: Secret
) -> Mapping[str, Any]:
    entries = (
        [e for e in config.get(section) or () if isinstance(e, dict)]
        if isinstance(config.get(section), list)
        else []
    )
    found = next((e.get(field) for e in entries if e.get("name") == name), None)
    if not isinstance(found, dict):
        known = ", ".join(sorted(str(e.get("name")) for e in entries)) or "none"
        raise _refusal(secret, f"it has no entry {name} in {section}", f"it has: {known}")
    return found


def _check(entry: Mapping[str, object], refused: Mapping[str, str], secret: Secret) -> None:
    for key, why in refused.items():
        if entry.get(key):
            raise _refusal(
                secret,
                f"it uses {key}" + (f": {why}" if why else ""),
                "use a kubeconfig with a CA and a token or client certificate",
            )


def _url(cluster: Mapping[str, object], secret: Secret) -> str:
    server = str(cluster.get("server") or "")
    if not SERVER.fullmatch(server):
        raise _refusal(secret, "its server is not an https address", "the API must be reached by https")
    return server.rstrip("/")


def _token(user: Mapping[str, object], folder: Path | None, secret: Secret) -> str:
    token = str(user.get("token") or "") or _file(user.get("tokenFile"), folder, secret).strip()
    if not TOKEN.fullmatch(token):
        raise _refusal(
            secret, "its token has characters that a token can't have", "create the kubeconfig again"
        )
    return hide(token, passing=True)


def _material(entry: Mapping[str, object], name: str, folder: Path | None, secret: Secret) -> str:
    """PEM from `<name>-data` (base64) or the file `<name>`, or ""."""
    data = entry.get(f"{name}-data")
    if not data:
        return _file(entry.get(name), folder, secret)
    try:
        return base64.b64decode(str(data), validate=True).decode()
    except (binascii.Error, ValueError):
        raise _refusal(secret, f"{name}-data is not base64 of PEM", "create the kubeconfig again") from None


def _file(name: object, folder: Path | None, secret: Secret) -> str:
    if not name:
        return ""
    if secret.foreign:
        raise _refusal(
            secret,
            "it names a file, and a file of this machine is none of that machine's business",
            "embed the content there, as kubeadm does",
        )
    path = expanded(str(name))
    if not path.is_absolute():
        if folder is None:
            raise _refusal(
                secret, f"it names the relative file {path}", "embed the content, or give an absolute path"
            )
        path = folder / path
    if not secret.sources.encloses(path):
        raise _refusal(
            secret,
            f"it names the file {path}, which is outside of the Site's own folder",
            "embed the content (certificate-authority-data, client-key-data, token), or bring the file with "
            "spec.files",
        )
    try:
        return small(path)
    except (OSError, ValueError) as error:
        raise _refusal(
            secret,
            f"the file {path} that it names can't be read: {getattr(error, 'strerror', None) or error}",
            "check the path",
        ) from None


def _refusal(secret: Secret, why: str, remedy: str) -> Refusal:
    return Refusal(f"the kubeconfig {secret} can't be used", field="kubeconfig", why=why, next=remedy)

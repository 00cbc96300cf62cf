"""Makes a Site object from a site's files, with where its references lead in the cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bfinfra.model.names import LABEL_VALUE
from bfinfra.model.records import dataclass
from bfinfra.operator.crd import GROUP, KIND, VERSION
from bfinfra.operator.names import FILE, SITE
from bfinfra.render.schedule import contents

API = f"{GROUP}/{VERSION}"


@dataclass(frozen=True)
class Given:
    """The values that a site refers to outside of itself. `env`: variables; `secrets`: paths → keys of the
    Secret; `files`: paths → contents for the ConfigMap.
    """

    env: tuple[str, ...]
    secrets: Mapping[str, str]
    files: Mapping[str, bytes]


def manifests(
    name: str,
    site: Mapping[str, Any],
    given: Given,
    *,
    namespace: str = "",
    settings: Mapping[str, str | bool] = MappingProxyType({"interval": "1h"}),
) -> list[dict[str, Any]]:
    """The ConfigMap, if there are files, and the Site. Both, and the Secret, have the name `name`."""
    home = {"namespace": namespace} if namespace else {}
    keys = {path: f"file-{number}" for number, path in enumerate(given.files)}
    secret = {path: {"secretKeyRef": {"name": name, "key": key}} for path, key in given.secrets.items()}
    plain = {path: {"configMapKeyRef": {"name": name, "key": key}} for path, key in keys.items()}
    spec: dict[str, Any] = dict(settings)
    if given.env:
        spec["env"] = {each: {"secretKeyRef": {"name": name, "key": each}} for each in given.env}
    if secret or plain:
        spec["files"] = secret | plain
    made = {
        "apiVersion": API,
        "kind": KIND,
        "metadata": {"name": name, **home},
        "spec": {**spec, "site": dict(site)},
    }
    if not keys:
        return [made]
    held = contents({keys[path]: content for path, content in given.files.items()})
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **home}, **held}, made]


def called(site: str) -> str:
    """A site's name, made valid for an object."""
    return site.lower().replace("_", "-").replace(".", "-") if re.fullmatch(LABEL_VALUE, site) else ""


def unfit(path: str) -> bool:
    """Return whether a Job can't have a file at this path."""
    return not FILE.fits(path) or path == SITE

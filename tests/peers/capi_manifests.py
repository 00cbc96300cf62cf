"""The definitions and webhooks of Cluster API as its modules have them, for managers that run on this machine:
each webhook by its address, no service; the labels that its own kustomizations give to definitions.

    capi_manifests.py CA NAME=PORT… -- NAME=FOLDER…    writes one List as JSON
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
CONTRACTS = {f"cluster.x-k8s.io/{version}": version for version in ("v1beta1", "v1beta2")}


def main(authority: str, *arguments: str) -> None:
    middle = arguments.index("--")
    ports = dict(each.split("=", 1) for each in arguments[:middle])
    bundle = base64.b64encode(Path(authority).read_bytes()).decode()
    found: list[Any] = []
    for each in arguments[middle + 1 :]:
        name, folder = each.split("=", 1)
        base = f"https://127.0.0.1:{ports[name]}"
        converted = {
            path.name.removeprefix("webhook_in_") for path in Path(folder, "config/crd/patches").glob("*")
        }
        for path in sorted(Path(folder, "config/crd/bases").glob("*.yaml")):
            known = yaml.load_all(path.read_text(), LOADER)
            found += (_definition(each, base, bundle, converted) for each in known)
        hooks = yaml.load_all(Path(folder, "config/webhook/manifests.yaml").read_text(), LOADER)
        found += (_hook(hook, name, base, bundle) for hook in hooks if hook)
    json.dump({"apiVersion": "v1", "kind": "List", "items": found}, sys.stdout)


def _definition(definition: Any, base: str, bundle: str, converted: set[str]) -> Any:
    definition["metadata"].setdefault("labels", {}).update(CONTRACTS)
    if f"{definition['spec']['names']['plural']}.yaml" in converted:
        client = {"url": f"{base}/convert", "caBundle": bundle}
        definition["spec"]["conversion"] = {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
        }
    return definition


def _hook(hook: Any, name: str, base: str, bundle: str) -> Any:
    hook["metadata"]["name"] = f"capi-{name}-{hook['metadata']['name']}"
    for each in hook["webhooks"]:
        each["clientConfig"] = {"url": base + each["clientConfig"]["service"]["path"], "caBundle": bundle}
    return hook


if __name__ == "__main__":
    main(*sys.argv[1:])

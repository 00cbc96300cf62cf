"""The custom resource definition of a Site, made from the site language."""

from __future__ import annotations

from typing import Any

from bfinfra.operator.names import FILE, KEY, OBJECT, SITE, VARIABLE
from bfinfra.operator.structural import Schema, structural

GROUP, VERSION, KIND, PLURAL = "bfinfra.io", "v1alpha1", "Site", "sites"
INTERVAL = r"^([1-9][0-9]*)(m|h|d)$"
KEY_OF: Schema = {
    "type": "object",
    "required": ["name", "key"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 253, "pattern": OBJECT.pattern},
        "key": {"type": "string", "minLength": 1, "maxLength": 253, "pattern": KEY.pattern},
    },
}
CONDITION: Schema = {
    "type": "object",
    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string"},
        "message": {"type": "string"},
        "observedGeneration": {"type": "integer", "format": "int64"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
COLUMNS = [
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Reason", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].reason'},
    {"name": "Drifted", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Drifted")].status'},
    {"name": "Approve", "type": "string", "jsonPath": ".status.plan.digest"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def definition(language: Schema) -> dict[str, Any]:
    """The manifest. `language`: the schema that bfinfra.spec.schema.schema makes."""
    whole = {
        "type": "object",
        "required": ["spec"],
        "description": "A GPU site that bfinfra keeps in its desired state.",
        "properties": {"spec": _spec(language), "status": _status()},
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": COLUMNS,
        "schema": {"openAPIV3Schema": whole},
    }
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "categories": ["bfinfra"],
    }
    made: dict[str, Any] = copied(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{PLURAL}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    return made


def copied(node: Any) -> Any:
    """A copy without shared parts, which YAML would write as anchors."""
    if isinstance(node, dict):
        return {key: copied(value) for key, value in node.items()}
    return [copied(each) for each in node] if isinstance(node, list | tuple) else node


WATCH: Schema = {
    "type": "boolean",
    "default": False,
    "description": (
        "If true, a watcher follows the servers and reports drift when it happens. A Job checks the site "
        "when something differs, and once a day; if no watcher runs, at the interval."
    ),
}
WAYS = ("secretKeyRef", "configMapKeyRef")
FROM_A_KEY: Schema = {
    "type": "object",
    "description": "exactly one of " + " and ".join(WAYS),
    "properties": dict.fromkeys(WAYS, KEY_OF),
    "oneOf": [{"required": [way]} for way in WAYS],
}
"""A value of an object that has many: from a Secret or a ConfigMap."""


DECLARED: Schema = {
    "env": {
        "type": "object",
        "maxProperties": 100,
        "description": (
            "Variables that {env: NAME} in the site names. They are the site's alone, and never "
            "variables of a process."
        ),
        "x-kubernetes-validations": [
            {"rule": f"self.all(name, name.matches('{VARIABLE.pattern}'))", "message": VARIABLE.words}
        ],
        "additionalProperties": FROM_A_KEY,
    },
    "files": {
        "type": "object",
        "maxProperties": 100,
        "description": "Files that the site names, by their path; site.yaml is the site's own.",
        "x-kubernetes-validations": [
            {
                "rule": f"self.all(path, path.matches('{FILE.pattern}') && path != '{SITE}')",
                "message": FILE.words,
            }
        ],
        "additionalProperties": FROM_A_KEY,
    },
}
"""What the site may name outside of itself."""


def _spec(language: Schema) -> Schema:
    return {
        "type": "object",
        "required": ["site"],
        "properties": {
            "site": _site(language),
            "interval": {
                "type": "string",
                "pattern": INTERVAL,
                "maxLength": 6,
                "default": "1h",
                "description": "Time between checks: 15m, 1h, 1d.",
            },
            "approval": {
                "type": "string",
                "enum": ["Always", "Disruptive", "Never"],
                "default": "Disruptive",
                "description": (
                    "Which plans wait for the annotation bfinfra.io/approve with their digest: all, what "
                    "deletes or disrupts, or none."
                ),
            },
            "deletion": {
                "type": "string",
                "enum": ["Destroy", "Keep"],
                "default": "Destroy",
                "description": "What happens to the site's objects when this object is deleted.",
            },
            "watch": WATCH,
            "suspend": {
                "type": "boolean",
                "default": False,
                "description": "If true, nothing is checked or changed.",
            },
            "claim": {
                "type": "string",
                "maxLength": 253,
                "pattern": OBJECT.pattern,
                "description": "A PersistentVolumeClaim for the journal and the results of drift checks.",
            },
            **DECLARED,
        },
    }


def _site(language: Schema) -> Schema:
    definitions = language["definitions"]
    made = {name: structural(each, definitions) for name, each in language["properties"].items()}
    fixed = {
        "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "a site keeps its name, which all its objects carry"}
        ],
        "maxLength": 63,
    }
    made["site"] |= fixed
    return {
        "type": "object",
        "required": ["site"],
        "description": "The site language, as in a site's file.",
        "properties": made,
    }


def _status() -> Schema:
    text: Schema = {"type": "string"}
    change = {"type": "object", "properties": {"address": text, "action": text, "disruption": text}}
    drifted = {"type": "object", "properties": {"address": text, "field": text, "cause": text, "by": text}}
    drift = {
        "type": "object",
        "description": "What has drifted.",
        "properties": {"count": {"type": "integer"}, "found": {"type": "array", "items": drifted}},
    }
    return {
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "resources": {"type": "integer", "description": "The number of the site's resources."},
            "plan": {
                "type": "object",
                "description": "The plan that waits for approval.",
                "properties": {
                    "digest": text,
                    "count": {"type": "integer"},
                    "destroy": {"type": "boolean"},
                    "changes": {"type": "array", "items": change},
                },
            },
            "drift": drift,
            "watch": _watch(drift),
            "conditions": {
                "type": "array",
                "items": CONDITION,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }


def _watch(drift: Schema) -> Schema:
    text, number = {"type": "string"}, {"type": "integer"}
    return {
        "type": "object",
        "description": "What the watcher of the Site reports.",
        "properties": {
            "replica": {**text, "description": "The watcher's pod; empty if nobody follows the Site."},
            "since": text,
            "following": {"type": "boolean", "description": "Whether changes of the servers are followed."},
            "why": {**text, "description": "Why they are not, or were not before the last report."},
            "blindSeconds": {
                "type": "number",
                "description": "How long, at most, changes were not followed before the last report.",
            },
            "losses": {**number, "description": "How often in a row its watcher was lost soon."},
            "observedGeneration": {**number, "format": "int64"},
            "changed": {**text, "description": "When the differences changed last."},
            "digest": text,
            "differences": {**number, "description": "Drift, and what was never applied."},
            "drift": drift,
        },
    }

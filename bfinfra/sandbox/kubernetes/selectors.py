"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from bfinfra.sandbox.kubernetes.errors import bad_request
from bfinfra.sandbox.kubernetes.objects import Object, dig

Match = Callable[[Object], bool]
TERM = re.compile(
    r"\s*(?P<not>!)?\s*(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=|\bin\b|\bnotin\b|>|<)\s*(?P<value>\([^)]*\)|[\w.-]*))?\s*(?:,|$)"
)
FIELD_TERM = re.compile(r"(?P<path>[^=!,]+)(?P<op>!=|==|=)(?P<value>[^,]*)(?:,|$)")
FIELDS = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
    ),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "reason",
        "type",
        "source",
    ),
    "Secret": ("type",),
    "Namespace": ("status.phase",),
    "Node": ("spec.unschedulable",),
    "Job": ("status.successful",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
}
"""The fields by which a server selects, besides metadata.name and metadata.namespace."""
ORDER = {"Gt": ">", "Lt": "<"}
"""Operators of node affinity → those of label selectors."""


def by_labels(text: str) -> Match:
    """A label selector's text as a predicate. Raises Refused (400) if it can't be read."""
    terms = _terms(text)
    return lambda thing: all(term(thing["metadata"].get("labels") or {}) for term in terms)


def by_selector(selector: Mapping[str, Any] | None) -> Match:
    """A LabelSelector of a spec as a predicate; None matches nothing, {} everything."""
    if selector is None:
        return lambda _: False
    wanted = dict(selector.get("matchLabels") or {})
    tests = [
        _operator(
            ORDER.get(each["operator"], each["operator"].lower()), each["key"], each.get("values") or []
        )
        for each in selector.get("matchExpressions") or []
    ]

    def match(thing: Object) -> bool:
        labels = thing["metadata"].get("labels") or {}
        return all(labels.get(key) == value for key, value in wanted.items()) and all(
            test(labels) for test in tests
        )

    return match


def by_fields(text: str, kind: str) -> Match:
    """A field selector's text as a predicate. Raises Refused (400) for a field that a server doesn't select
    by.
    """
    known = ("metadata.name", "metadata.namespace", *FIELDS.get(kind, ()))
    terms = [
        (found["path"].strip(), found["op"] != "!=", found["value"]) for found in FIELD_TERM.finditer(text)
    ]
    if text and not terms:
        raise bad_request(f"invalid selector: {text!r}; can't understand {text!r}")
    for path, _, _ in terms:
        if path not in known:
            listed = ", ".join(f'"{each}"' for each in sorted(known))
            raise bad_request(f'"{path}" is not a known field selector: only {listed}')
    return lambda thing: all(
        (str(dig(thing, *path.split("."), default="")) == value) is wanted for path, wanted, value in terms
    )


def _terms(text: str) -> list[Callable[[Mapping[str, str]], bool]]:
    terms, at = [], 0
    while at < len(text):
        found = TERM.match(text, at)
        if not found or found.end() == at:
            raise bad_request(
                f"unable to parse requirement: found {text[at:]!r} in the label selector {text!r}"
            )
        value = found["value"] or ""
        values = [each.strip() for each in value.strip("()").split(",")]
        operator = found["op"] or ("doesnotexist" if found["not"] else "exists")
        terms.append(_operator(operator, found["key"], values))
        at = found.end()
    return terms


def _operator(operator: str, key: str, values: list[str]) -> Callable[[Mapping[str, str]], bool]:
    if operator in ("=", "==", "in"):
        return lambda labels: labels.get(key) in values
    if operator in ("!=", "notin"):
        return lambda labels: labels.get(key) not in values
    if operator == "exists":
        return lambda labels: key in labels
    if operator == "doesnotexist":
        return lambda labels: key not in labels
    return lambda labels: (
        labels.get(key, "").isdigit() and (int(labels[key]) > int(values[0])) is (operator == ">")
    )

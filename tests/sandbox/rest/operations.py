"""The official SDK's own table of operations: method, address, body and answer of each; a judge of whole
exchanges.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from judge import (
    cis_client,
    clusters_client,
    consumption_domains_client,
    content_client,
    depots_client,
    draft_client,
    edges_client,
    harbor_client,
    instances_client,
    item_client,
    library_client,
    misfits,
    namespace_management_client,
    namespaces_client,
    ovf_client,
    registries_client,
    software_client,
    storage_client,
    supervisors_client,
    tagging_client,
    updatesession_client,
    user_client,
    vcenter_client,
    vm_template_client,
    zone_cluster_client,
)
from vmware.vapi.bindings.stub import ApiInterfaceStub
from vmware.vapi.data import definition as vapi
from vmware.vapi.data.definition import VoidDefinition

MODULES = (
    cis_client,
    clusters_client,
    content_client,
    depots_client,
    draft_client,
    software_client,
    library_client,
    item_client,
    updatesession_client,
    ovf_client,
    namespace_management_client,
    namespaces_client,
    storage_client,
    supervisors_client,
    tagging_client,
    registries_client,
    harbor_client,
    instances_client,
    user_client,
    vcenter_client,
    vm_template_client,
    zone_cluster_client,
    consumption_domains_client,
    edges_client,
)


@dataclass(frozen=True)
class Exchange:
    """One request and its answer; bodies as JSON values, None = none. `path` without /api."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    status: int
    answer: Any


@dataclass(frozen=True)
class Operation:
    """`template`: `/vcenter/namespaces/instances/{namespace}`; `body`: the type that goes in, `answer`: the
    one that comes out.

    `marker`: what the query must name, of two operations of one path.
    """

    method: str
    template: str
    action: str
    marker: str
    query: frozenset[str]
    body: Any
    answer: Any

    def __str__(self) -> str:
        return f"{self.method} {self.template}" + (f"?action={self.action}" if self.action else "")

    def takes(self, exchange: Exchange) -> bool:
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(self.template))
        asked = (
            self.method == exchange.method
            and self.action == exchange.query.get("action", "")
            and (not self.marker or self.marker in exchange.query)
        )
        return asked and bool(re.fullmatch(pattern, exchange.path))


@functools.cache
def operations() -> tuple[Operation, ...]:
    """Every operation of the modules, from what each stub hands over when it is made."""
    found: list[Operation] = []

    def note(stub: Any, *_: Any, operations: Any, rest_metadata: Any, **more: Any) -> None:
        for name, rest in rest_metadata.items():
            if types := operations.get(name):
                found.append(_operation(rest, types))
            if types := operations.get(f"{name}$task"):
                made = _operation(rest, types)
                given = made.query | {"vmw-task"}
                found.append(replace(made, marker="vmw-task", query=given, answer=vapi.StringDefinition()))

    with mock.patch.object(ApiInterfaceStub, "__init__", note), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of the SDK's own modules, when it resolves its types
        for module in filter(None, MODULES):
            for name, each in vars(module).items():
                if (
                    name.endswith("Stub")
                    and isinstance(each, type)
                    and each is not ApiInterfaceStub
                    and issubclass(each, ApiInterfaceStub)
                ):
                    each(None)
    return tuple(
        sorted(found, key=lambda each: (each.template.count("{"), not each.marker))
    )  # .../instances/v2 before .../instances/{namespace}


def judged(exchange: Exchange) -> tuple[str, list[str]]:
    """Which operation it is, and what is wrong with it; nothing where it fits."""
    operation = next((each for each in operations() if each.takes(exchange)), None)
    if operation is None:
        return "", [f"{exchange.method} {exchange.path}: the SDK knows no such operation"]
    wrong = [f"query {name}: unknown" for name in exchange.query if name not in operation.query | {"action"}]
    if exchange.body is None and isinstance(operation.body, vapi.OptionalDefinition):
        pass
    elif (operation.body is None) != (exchange.body is None):
        wrong.append(f"the body is {exchange.body!r}")
    elif operation.body is not None:
        wrong += misfits(operation.body, exchange.body, "body")
    if exchange.status < 300:
        wrong += _of_answer(operation.answer, exchange.answer)
    return str(operation), [f"{operation}: {each}" for each in wrong]


def _of_answer(kind: Any, answer: Any) -> list[str]:
    if isinstance(kind, VoidDefinition) or answer is None:
        return [] if answer is None and isinstance(kind, VoidDefinition) else [f"the answer is {answer!r}"]
    return misfits(kind, answer, "answer")


def _operation(rest: Any, types: Any) -> Operation:
    template, _, query = rest._url_template.partition("?")
    given = types["input_type"].definition
    body = (
        given.get_field(rest.request_body_parameter) if rest.request_body_parameter else _rest_of(given, rest)
    )
    marker, _, action = query.partition("=")  # `?action=find`, or `?library_id`
    marker = "" if action else marker
    asked = rest._dispatch_parameters or {}  # older SDKs have the query here
    action = action or asked.get("action", "")
    marker = marker or next((name for name in asked if name != "action"), "")
    names = frozenset(rest._query_parameters.values()) | ({marker} - {""})
    return Operation(rest.http_method, template, action, marker, names, body, types["output_type"].definition)


def _rest_of(given: Any, rest: Any) -> Any:
    """What stands in the body under its own name: neither in the path nor in the query nor in a header. None
    where nothing does, or nothing must.
    """
    elsewhere = {
        *rest._path_variables,
        *rest._query_parameters,
        *rest._header_parameters.values(),
        *rest._dispatch_parameters,
    }
    fields = {name: given.get_field(name) for name in given.get_field_names() if name not in elsewhere}
    must = [name for name, each in fields.items() if not isinstance(each, vapi.OptionalDefinition)]
    return vapi.StructDefinition("body", tuple(fields.items())) if must else None

"""What the backends can send, read off their sources: SOAP methods, REST and other paths, verbs of
Kubernetes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx2
from contract import table
from contract.sides import plain
from pyVmomi.VmomiSupport import GetWsdlMethod

from bfinfra.backends import writes

BACKENDS = Path(__file__).parents[2] / "bfinfra/backends"
VERBS = {
    "get": "GET",
    "post": "POST",
    "patch": "PATCH",
    "put": "PUT",
    "delete": "DELETE",
    "bytes": "GET",
    "_list": "GET",
    "_object": "GET",
}
"""Of the REST client and of plain HTTP, and what stands on them in namespaces.py."""
POLICIES = "vcenter/policies.py"
NO_PATH = {"/sdk"}
"""The SOAP API: its methods count one by one."""


def asked() -> set[str]:
    """What the suite asked of the sandbox, by name."""
    return {
        request
        for each in table.results().values()
        if each.get("sandbox", {}).get("outcome") == "passed"
        for request in each["sandbox"]["requests"]
    }


def noting(seen: set[str]) -> type[httpx2.BaseTransport]:
    """A filling that notes what is asked, by name."""

    class Noting(httpx2.BaseTransport):
        def __init__(self, inner: httpx2.BaseTransport) -> None:
            self._inner = inner

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            seen.add(plain(writes.name(request)))
            return self._inner.handle_request(request)

        def close(self) -> None:
            self._inner.close()

    return Noting


def soap_methods() -> set[str]:
    """Every vSphere method that is called, or named to be called, in backends/vcenter; those of storage
    policies (`PbmCreate`) in its policies.py alone.
    """
    policies = {f"Pbm{word}" for word in _words([ast.parse((BACKENDS / POLICIES).read_text())])}
    return {word for word in _words(_trees("vcenter")) if _is_method(word)} | {
        word for word in policies if _is_method(word, "urn:pbm")
    }


def _words(trees: Iterable[ast.Module]) -> set[str]:
    words = {
        node.attr if isinstance(node, ast.Attribute) else node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    }
    return {word for word in words if word.isidentifier() and word[0].isupper()}


def paths() -> set[str]:
    """`GET /api/…` of every call whose path is a text, a constant, or a text made of both; ids and names as
    `plain` writes them.
    """
    return {plain(f"{verb} {path}") for verb, path in _calls() if path.partition("?")[0] not in NO_PATH}


def kubernetes_verbs() -> set[str]:
    """What is asked of lightkube: list, get, create …"""
    return {
        node.attr
        for tree in _trees("kubernetes")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "objects"
    }


def _calls() -> Iterator[tuple[str, str]]:
    for tree in _trees(""):
        known = _constants(tree) | _imported(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            verb, place = VERBS.get(node.func.attr, ""), node.args[0]
            if node.func.attr == "stream" and isinstance(node.args[0], ast.Constant):
                verb, place = str(node.args[0].value), node.args[1]
            path = _text(place, known) if verb else ""
            if path.startswith("/"):
                yield verb, path


def _constants(tree: ast.Module) -> dict[str, object]:
    return {
        t.id: n.value.value
        for n in tree.body
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
        for t in n.targets
        if isinstance(t, ast.Name)
    }


def _imported(tree: ast.Module) -> dict[str, object]:
    """Constants of other modules of the backends."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bfinfra.backends."):
            file = BACKENDS.parents[1] / f"{str(node.module).replace('.', '/')}.py"
            there = _constants(ast.parse(file.read_text())) if file.exists() else {}
            found |= {each.asname or each.name: there[each.name] for each in node.names if each.name in there}
    return found


def _text(node: ast.expr, known: dict[str, object]) -> str:
    """What an expression says, `x` for what only a run knows."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return str(known.get(node.id, ""))
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _text(part.value, known) or "x" if isinstance(part, ast.FormattedValue) else _text(part, known)
            for part in node.values
        )
    return ""


def _trees(folder: str) -> Iterator[ast.Module]:
    for file in sorted((BACKENDS / folder).rglob("*.py")):
        yield ast.parse(file.read_text())


def _is_method(name: str, space: str = "urn:vim25") -> bool:
    try:
        GetWsdlMethod(space, name)
    except KeyError:
        return False
    return True

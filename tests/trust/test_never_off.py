"""Verification can't be switched off: by no option, by no field of a site, by no variable; and the code does
so in one place, which pins.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Namespace
from pydantic import BaseModel
from trust.authority import Authority
from trust.listening import listening

import bfinfra
from bfinfra import kinds
from bfinfra.backends.kubernetes.access import Access
from bfinfra.backends.kubernetes.link import Link
from bfinfra.backends.transport import Transport
from bfinfra.cli.parser import build
from bfinfra.model.errors import Untrusted
from bfinfra.model.site import VCenterSettings
from bfinfra.model.trust import Trust

PACKAGE = Path(bfinfra.__file__).parent
LIGHTKUBE = PACKAGE / "backends" / "kubernetes" / "link.py"
PINNING = PACKAGE / "backends" / "tls.py"
OFF = re.compile(
    r"insecure|skip.?(tls|verif|check)|no.?(verify|check|tls|ssl)|verify.?ssl|unverified|trust.?all|ignore.?cert",
    re.IGNORECASE,
)


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The code of a file; three tests read the package."""
    return ast.parse(path.read_text())


WORDS = re.compile(r"verify|hostname|insecure|CERT_NONE|unverified|PROTOCOL_TLS|PROTOCOL_SSLv23|setattr")
"""Each way to switch verification off has one of these words, which Python can't write otherwise."""


def suspicious() -> dict[Path, ast.Module]:
    """The files of the package that have one of those words, parsed."""
    found = (path for path in sorted(PACKAGE.rglob("*.py")) if WORDS.search(path.read_text()))
    return {path: parsed(path) for path in found}


def ways_around(tree: ast.AST) -> list[str]:
    """What in Python source switches the verification of certificates off, by line."""
    found = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if (
            isinstance(node, ast.keyword)
            and node.arg in ("verify", "check_hostname", "assert_hostname")
            and _false(node.value)
        ):
            found.append(f"{line}: {node.arg}=False")
        elif isinstance(node, ast.keyword) and node.arg == "insecure" and not _false(node.value):
            found.append(f"{line}: insecure=True")
        elif (
            isinstance(node, ast.Assign)
            and _false(node.value)
            and any(_name(t) in ("check_hostname", "verify") for t in node.targets)
        ):
            found.append(f"{line}: check_hostname = False")
        elif isinstance(node, ast.Attribute | ast.Name) and _name(node) in (
            "CERT_NONE",
            "_create_unverified_context",
            "PROTOCOL_TLS",
            "PROTOCOL_SSLv23",
        ):
            found.append(f"{line}: {_name(node)}")
        elif (
            isinstance(node, ast.Call)
            and _name(node.func) == "setattr"
            and any(isinstance(a, ast.Constant) and a.value == "check_hostname" for a in node.args)
        ):
            found.append(f"{line}: setattr(check_hostname)")
    return found


def _false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (False, None, 0)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_the_code_switches_it_off_in_the_one_function_that_pins_and_shows():
    found = suspicious()
    assert {PINNING, LIGHTKUBE} <= found.keys()
    for path, tree in found.items():
        if path.is_relative_to(PACKAGE / "sandbox"):
            continue  # servers: they ask their clients for no certificate
        if path == PINNING:
            (one,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and ways_around(node)]
            assert one.name == "unverified"
        elif path == LIGHTKUBE:  # brings its own transport, as the next test shows
            assert [way.partition(": ")[2] for way in ways_around(tree)] == ["insecure=True"]
        else:
            assert ways_around(tree) == [], path


def test_lightkube_asks_nobody_whom_the_kubeconfig_does_not_trust(tmp_path):
    shown, other = Authority(tmp_path).leaf(), Authority(tmp_path)
    transport = Transport()
    with listening(shown.file) as server:
        link = Link(transport, Access(server.url, Trust(ca_pem=other.pem), token="a-token"), "cluster")
        for ask in (lambda: link.raw.get("/version"), lambda: link.objects.get(Namespace, "default")):
            with pytest.raises(Untrusted):
                ask()
        assert server.asked == []
        link.close()
    transport.close()


def test_that_function_is_called_where_a_pin_is_checked_or_a_certificate_only_shown():
    callers = {}
    for path, tree in suspicious().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(c, ast.Call) and _name(c.func) == "unverified" for c in ast.walk(node)
            ):
                callers.setdefault(path.relative_to(PACKAGE).as_posix(), []).append(node.name)
    assert callers == {"backends/tls.py": ["context", "shown"]}


@pytest.mark.parametrize(
    "source",
    [
        "httpx.get(url, verify=False)",
        "context.check_hostname = False",
        "context.verify_mode = ssl.CERT_NONE",
        "ssl._create_unverified_context()",
        "setattr(context, 'check_hostname', False)",
        "from ssl import CERT_NONE\nx = CERT_NONE",
        "session.verify = False",
        "Cluster(insecure=True)",
    ],
)
def test_the_scan_finds_each_way_to_switch_it_off(source):
    assert WORDS.search(source)
    assert ways_around(ast.parse(source))


def test_no_option_of_any_command_switches_it_off():
    options = [
        option
        for parser in _parsers(build())
        for action in parser._actions
        for option in action.option_strings
    ]
    assert "--allow-delete" in options
    assert [option for option in options if OFF.search(option)] == []


def test_no_field_of_a_site_switches_it_off():
    fields = [
        name
        for model in (Trust, VCenterSettings, *(kinds.spec(kind) for kind in kinds.names()))
        for name in _fields(model)
    ]
    assert "passthrough" in fields
    assert [name for name in fields if OFF.search(name)] == []


def test_no_variable_of_the_environment_is_read_that_does():
    variable = re.compile(r"(BFINFRA|GOVC|VSPHERE|VMWARE|KUBECTL|PYTHON|SSL|REQUESTS|CURL)_\w+")
    names = set()
    for path in PACKAGE.rglob("*.py"):
        if variable.search(path.read_text()):  # to parse every file takes seconds
            names |= {
                node.value
                for node in ast.walk(parsed(path))
                if isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and variable.fullmatch(node.value)
            }
    assert "BFINFRA_TRACEBACK" in names
    assert [name for name in names if OFF.search(name)] == []


def _parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


def _fields(model: type[BaseModel]):
    for name, field in model.model_fields.items():
        yield name
        for inner in getattr(field.annotation, "__args__", ()) or (field.annotation,):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _fields(inner)

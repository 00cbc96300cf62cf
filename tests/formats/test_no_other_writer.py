"""No other place writes a format of bfinfra/formats: each file of the package is read for it.

A text with `{…}` in it that looks like a line of a format may only have in it what the format's writer made: a call of
a function of bfinfra.formats, a constant, or a name that such a call was bound to. And what writes a whole document of
such a format (PyYAML's and ruamel.yaml's dump, shlex.quote) is named nowhere else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "bfinfra"
FORMATS = PACKAGE / "formats"
LINES = {
    "a comment": re.compile(r"(^|\n|  )#{1,2}(!?| +)$"),
    "a Dockerfile": re.compile(r"(^|\n)(FROM|RUN|USER|COPY|ADD|WORKDIR|ENV|ARG|LABEL|CMD) "),
    "a unit": re.compile(r"(^|\n)[A-Z][A-Za-z]+=$"),
    "DOT": re.compile(r"digraph| \[label=|\s->\s\"?$"),
    "Mermaid": re.compile(r"flowchart |-->|-\.->"),
    "PowerShell": re.compile(r"\b(New|Get|Set)-[A-Z][A-Za-z]+ -"),
    "a command line": re.compile(
        r"""(?x) \b(export | kubectl | systemctl | govc | docker[ ](build|push|run))[ ]
        | \bbfinfra[ ](plan|apply|adopt|drift|trust|validate|init|import|destroy|doctor|token|sandbox|watch|get)[ ](?!of\b)[^;]*$"""
    ),
    "fish": re.compile(r"complete -c "),
}
WHOLE = {
    *("yaml.dump", "yaml.dump_all", "yaml.safe_dump", "yaml.safe_dump_all", "yaml.emit", "yaml.serialize"),
    *("shlex.quote", "shlex.join", "tomlkit.dumps"),
}
MAY = {
    "render/site.py": "yaml.serialize, with the writer's Dumper",
    "kinds/machine/nvidia_container_toolkit/runtime.py": "tomlkit writes TOML, and the text is read again",
    "backends/ansible/connection.py": "a command that bfinfra itself runs: tests/backends",
    "backends/ansible/play.py": "a command that bfinfra itself runs: tests/backends",
    "backends/ansible/reading.py": "a command that bfinfra itself runs: tests/backends",
    "model/secret.py": "the name of a variable, as the model imports nothing",
    "kinds/cluster/workload/plugin.py": "the command of a pod, which Kubernetes takes as a list",
    "cli/shells.py": "completion scripts of the parser's own words: tests/cli/test_cli_shell.py",
    "operator/status.py": "names of Kubernetes objects, which its server checks",
    "render/junit.py": "the title of a report, no command",
    "render/kinds.py": "a page of Markdown, of words of the package",
    "render/powercli.py": "each name goes through quoted: tests/cli/test_privileges.py",
}
"""File → why it may write one itself."""
FILES = sorted(path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(PACKAGE / "sandbox"))


def findings(source: str) -> Iterator[str]:
    """What writes a format by itself: line, format, and what it puts in."""
    tree = ast.parse(source)
    made = _made_by_writers(tree)
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_made(node, made)
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (name := f"{node.value.id}.{node.attr}") in WHOLE:
                yield f"{node.lineno}: {name}"
        elif isinstance(node, ast.JoinedStr) and id(node) not in within:
            yield from _of_text(node, made)


def _of_text(text: ast.JoinedStr, made: set[str]) -> Iterator[str]:
    before = ""
    for part in text.values:
        if isinstance(part, ast.Constant):
            before += str(part.value)
            continue
        assert isinstance(part, ast.FormattedValue)
        what = next((name for name, line in LINES.items() if line.search(before)), "")
        if what and not _is_made(part.value, made):
            yield f"{text.lineno}: {what}: {ast.unparse(part.value)}"
        before += "…"


def _is_made(value: ast.expr, made: set[str]) -> bool:
    """Return whether a value is a writer's, a constant, or made of those alone."""
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr == "join":
            return all(_is_made(each, made) for each in value.args)
        return ast.unparse(value.func).partition(".")[0] in made
    if isinstance(value, ast.GeneratorExp | ast.ListComp):
        return _is_made(value.elt, made)
    if isinstance(value, ast.Tuple):
        return all(_is_made(each, made) for each in value.elts)
    if isinstance(value, ast.IfExp):
        return _is_made(value.body, made) and _is_made(value.orelse, made)
    if isinstance(value, ast.JoinedStr):
        return all(
            _is_made(part.value, made) for part in value.values if isinstance(part, ast.FormattedValue)
        )
    if isinstance(value, ast.Name):
        return value.id in made or value.id.isupper()
    return isinstance(value, ast.Constant) or ast.unparse(value).rpartition(".")[2].isupper()


def _made_by_writers(tree: ast.Module) -> set[str]:
    """Names that bfinfra.formats gives a file, and what is bound to a call of one."""
    made = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bfinfra.formats")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_made(node.value, made):
            made |= _names(*node.targets)
        elif isinstance(node, ast.For) and _is_made(node.iter, made):
            made |= _names(node.target)
    return made


def _names(*targets: ast.expr) -> set[str]:
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_writes_no_format_by_itself(path: Path) -> None:
    if path.is_relative_to(FORMATS):
        return
    found = list(findings(path.read_text()))
    if str(path.relative_to(PACKAGE)) in MAY:
        assert found, "it needs no leave any more"
    else:
        assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        'line = f"#   {what}: {why}"',
        'line = f"RUN adduser {user}"',
        'line = f"User={user}"',
        'line = f"  bfinfra adopt {site} all"',
        'say(f"export KUBECONFIG={path}")',
        'line = f"kubectl create secret generic {name}"',
        "text = yaml.safe_dump(found)",
        "text = shlex.join(words)",
        'line = f"Get-Folder -Name {name}"',
        'line = f"complete -c bfinfra -a {word}"',
        'line = f"digraph {name} {{"',
    ],
)
def test_a_writer_in_another_place_is_found(planted: str) -> None:
    assert list(findings(planted))
    assert not list(findings('from bfinfra.formats.shell import word\nline = f"export X={word(path)}"'))

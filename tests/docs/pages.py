"""The generated pages of docs/, the definition of a Site and what the chart copies, as they ought to be; run as a program it writes
them (script/pages).
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bfinfra import kinds as registry
from bfinfra.cli.parser import EXITS, build
from bfinfra.operator.crd import definition
from bfinfra.render import data
from bfinfra.render import kinds as render
from bfinfra.render.schedule import manifest
from bfinfra.sandbox import world_schema
from bfinfra.sandbox.factories.deb import make_deb
from bfinfra.sandbox.factories.files import make_text
from bfinfra.sandbox.factories.image import make_image
from bfinfra.sandbox.factories.ova import make_ova
from bfinfra.sandbox.factories.token import make_token
from bfinfra.sandbox.reading import Bytes
from bfinfra.spec.schema import schema

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KINDS = DOCS / "reference/kinds"
DECISIONS = DOCS / "explanation/decisions"
CHART = ROOT / "deploy/helm/bfinfra-operator"
PLAIN = str.maketrans("", "", "`\\")
"""Of a Markdown cell, what is not text."""
MADE = "Made by `script/pages`"


def pages() -> dict[Path, str]:
    """File → text."""
    found = {name: registry.kind(name) for name in registry.names()}
    site_definition = manifest([definition(schema(values=False))]) + "\n"
    each = {
        KINDS / f"{name}.md": render.page(name, kind, (ROOT / f"specs/kinds/{name}.yaml").read_text())
        for name, kind in found.items()
    }
    return {
        KINDS / "README.md": render.index(found),
        **each,
        DOCS / "reference/command-line.md": command_line(),
        DOCS / "reference/bfinfra.1": manual(),
        DOCS / "reference/json.md": json_formats(),
        DOCS / "reference/world.md": world_page(),
        ROOT / "specs/world.schema.json": data.text(world_schema.schema()) + "\n",
        DECISIONS / "README.md": decision_index(),
        ROOT / "deploy/operator/crd.yaml": site_definition,
        CHART / "files/crd.yaml": site_definition,
        CHART / "files/alerts.yaml": (ROOT / "deploy/operator/alerts.yaml").read_text(),
    }


def command_line() -> str:
    """Every command with its arguments, then the exit codes and the environment."""
    parser = build()
    codes, _, environment = EXITS.partition("\n")
    lines = [
        "# Command line",
        "",
        f"{MADE} from the same text as `bfinfra COMMAND --help`.",
        "",
        "## Options of every command",
        "",
        *_arguments(parser),
    ]
    for name, command in _commands(parser):
        own = [line for line in _arguments(command) if line not in _arguments(parser)[2:]]
        lines += ["", f"## bfinfra {name}", "", command.description or "", *([""] if len(own) > 2 else [])]
        lines += own if len(own) > 2 else []
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {number} | {text} |" for number, text in re.findall(r"((?:\d+ and )?\d+) ([^;]+)", codes)]
    lines += ["", *OUTCOMES, "", "## Environment", "", f"{environment.removeprefix('environment: ')}.", ""]
    return "\n".join(lines)


OUTCOMES = [
    "A server that refuses and one that can't be reached have the same code in every command, whichever server it is and whatever",
    "it refuses: the message says which of the two it was.",
    "",
    "| what happens | plan | plan --detailed-exitcode | drift | apply | destroy |",
    "|---|---|---|---|---|---|",
    "| nothing is to be done | 0 | 0 | 0 | 0 | 0 |",
    "| something is to be done | 0 | 2 | 2 | 0 | 0 |",
    "| a server refuses the login | 1 | 1 | 1 | 1 | 1 |",
    "| a server refuses to show something | 1 | 1 | 1 | 1 | 1 |",
    "| a server shows another certificate | 1 | 1 | 1 | 1 | 1 |",
    "| a server can't be reached | 1 | 1 | 1 | 1 | 1 |",
    "| a server can't serve requests now | 1 | 1 | 1 | 1 | 1 |",
    "| a server refuses a change | | | | 1 | 1 |",
    "| something takes longer than it was given | | | | 3 | 3 |",
]
"""What each command ends with; tests/cli/test_exit_codes.py runs every row."""


def world_page() -> str:
    """What may stand in a world file, from what reads it."""
    lines = [
        "# The sandbox's world file",
        "",
        f"{MADE} from `bfinfra/sandbox/world*.py`. A world describes what exists before a site is applied: hosts, datastores, networks,",
        "users, supervisors, Linux machines, and stand-ins for the files that the site names. `bfinfra init --world SITE` writes",
        "`worlds/SITE.yaml` beside the site, where `--sandbox` finds it; `--world FILE` names another one. `bfinfra schema --world`",
        "prints the JSON Schema. Problems in a world are reported with file, line and column.",
        "",
        "A size is a number of bytes or has a unit: `32GiB`. A password is a text, `{env: NAME}` of the world's `env`,",
        "or `{generate: password}`; `bfinfra sandbox status SITE` names the file that holds what is generated.",
    ]
    for name, kind in world_schema.sections().items():
        lines += [
            "",
            f"## {name}",
            "",
            world_schema.about(kind),
            "",
            "| key | type | default | meaning |",
            "|---|---|---|---|",
        ]
        texts = world_schema.descriptions(kind)
        for key, (hint, default) in world_schema.fields(kind).items():
            about = texts[key].replace("|", "\\|").replace("*", "\\*")
            lines.append(f"| `{key}` | {_world_type(hint)} | {_world_default(hint, default)} | {about} |")
    lines += ["", "## Files", "", "`make` names what makes a file; `options` are what that takes.", ""]
    lines += ["| make | options | what |", "|---|---|---|"]
    for make, maker in FACTORIES.items():
        taken = [name for name in inspect.signature(maker).parameters if name != "path"]
        about = " ".join((maker.__doc__ or "").split()).partition(". ")[0].partition(";")[0].rstrip(".")
        lines.append(f"| `{make}` | {', '.join(f'`{each}`' for each in taken)} | {about} |")
    lines += [f"| `{make}` | {options} | {about} |" for make, options, about in OF_THE_SANDBOX]
    return "\n".join([*lines, ""])


FACTORIES = {"ova": make_ova, "token": make_token, "deb": make_deb, "image": make_image, "text": make_text}
OF_THE_SANDBOX = (
    ("ca", "", "The certificate of the sandbox's authority"),
    ("kubeconfig", "`cluster`", "Access to one of the world's `kubernetes_clusters`, as its administrator"),
    ("ssh_key", "", "The key that lets into the world's Linux machines"),
    ("known_hosts", "", "The host keys of the world's Linux machines"),
)


def _world_type(hint: object) -> str:
    """A type in words: `list of text`, `mapping of Host`."""
    origin, inner = (
        typing.get_origin(hint),
        [each for each in typing.get_args(hint) if each is not type(None)],
    )
    if origin is tuple:
        return f"list of {_world_type(inner[0])}"
    if origin is Mapping:
        return f"mapping of {_world_type(inner[1])}"
    if inner:
        return _world_type(inner[0])
    words = {
        str: "text",
        int: "number",
        float: "number",
        bool: "true or false",
        Bytes: "size",
        typing.Any: "any",
    }
    return words.get(hint) or f"[{hint.__name__}](#{hint.__name__.lower()})"


def _world_default(hint: object, default: object) -> str:
    if default is dataclasses.MISSING:
        return "must be given"
    if default in ("", (), {}, None):
        return "none"
    if hint is Bytes:
        return f"`{typing.cast('int', default) >> 30}GiB`" if default else "none"
    value = list(default) if isinstance(default, tuple) else default
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def manual() -> str:
    """The same as a manual page, in the language of man(7)."""
    parser = build()
    lines = [
        ".TH BFINFRA 1",
        ".SH NAME",
        f"bfinfra \\- {_roff(parser.description or '')}",
        ".SH SYNOPSIS",
        ".B bfinfra",
        "COMMAND [ARGUMENT ...]",
        ".SH OPTIONS OF EVERY COMMAND",
        *_roff_arguments(parser),
        ".SH COMMANDS",
    ]
    shared = _roff_arguments(parser)
    for name, command in _commands(parser):
        lines += [f".SS bfinfra {_roff(name)}", _roff(command.description or "")]
        lines += [line for line in _roff_arguments(command) if line not in shared or line == ".TP"]
    return "\n".join([*lines, ".SH EXIT STATUS AND ENVIRONMENT", _roff(EXITS.replace("\n", "; ")), ""])


def _roff_arguments(parser: argparse.ArgumentParser) -> list[str]:
    return [
        f".TP\n.B {_roff(_argument(action).translate(PLAIN))}\n{_roff(action.help or '')}"
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]


def _roff(text: str) -> str:
    """Text in which nothing is a request: backslashes and hyphens are escaped, no line begins with a dot."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("→", "->")
    return f"\\&{escaped}" if escaped[:1] in ".'" else escaped


def _commands(
    parser: argparse.ArgumentParser, prefix: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command that runs; one with commands of its own stands for these."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                inner = list(_commands(command, f"{prefix}{name} "))
                yield from inner or [(f"{prefix}{name}", command)]


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    rows = [
        f"| {_argument(action)} | {_cell(action.help or '')} |"
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]
    return ["| argument | meaning |", "|---|---|", *rows]


def _argument(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    if not action.option_strings:
        return f"`{_cell(str(value or action.dest))}`"
    return ", ".join(
        f"`{_cell(' '.join(filter(None, (name, str(value) if action.nargs != 0 else ''))))}`"
        for name in action.option_strings
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def json_formats() -> str:
    """Every document that `--output json` or `jsonl` prints: its type, what it holds, its fields."""
    lines = [
        "# JSON formats",
        "",
        f"{MADE} from the source. `--output json` prints one document, `--output jsonl` one document a line.",
        "Each has `format_version` and `type`; the other fields follow here. `bfinfra drift` has a JSON Schema:",
        "[specs/drift.schema.json](../../specs/drift.schema.json).",
        "",
        "| type | fields | what it holds |",
        "|---|---|---|",
    ]
    found = sorted(
        {
            row
            for folder in ("render", "cli")
            for file in (ROOT / "bfinfra" / folder).rglob("*.py")
            for row in _documents(ast.parse(file.read_text()))
        }
    )
    return "\n".join([*lines, *found, ""])


def _documents(module: ast.Module) -> Iterator[str]:
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and _name(call.func) == "document" and call.args:
                what = call.args[0]
                name = f"`{what.value}`" if isinstance(what, ast.Constant) else "each event of a run"
                fields = ", ".join(f"`{each.arg}`" if each.arg else "its own" for each in call.keywords)
                about = " ".join((ast.get_docstring(function) or "").split())
                yield f"| {name} | {fields} | {_cell(about)} |"


def _name(called: ast.expr) -> str:
    return getattr(called, "attr", "") or getattr(called, "id", "")


@dataclass(frozen=True, order=True)
class Decision:
    """The head of a decision's page."""

    number: int
    title: str
    date: str
    status: str
    file: str


HEAD = re.compile(r"# (\d+)\. (.+)\n\nDate: (\d{4}-\d\d-\d\d)\. Status: (.+)\.\n\n")


def decisions() -> list[Decision]:
    """Every decision by its number; a page without number, date or status is refused."""
    found = []
    for file in DECISIONS.glob("[0-9]*.md"):
        head = HEAD.match(file.read_text())
        if not head:
            raise ValueError(f'{file} does not begin "# NUMBER. TITLE", then "Date: …. Status: …."')
        number, title, date, status = head.groups()
        found.append(Decision(int(number), title, date, status, file.name))
    return sorted(found)


def decision_index() -> str:
    """The decisions by number."""
    rows = [f"| {d.number} | [{d.title}]({d.file}) | {d.date} | {d.status} |" for d in decisions()]
    return "\n".join(
        [
            "# Decisions",
            "",
            f"{MADE}. A decision keeps its number; one that no longer holds says which one replaced it.",
            "",
            "| number | decision | date | status |",
            "|--:|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    made = pages()
    for stale in set(KINDS.glob("*.md")) - set(made):
        stale.unlink()
    for file, text in made.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

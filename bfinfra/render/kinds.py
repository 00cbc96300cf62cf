"""The kinds of resources, and their fields, from their docstrings."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from bfinfra.model.document import Document
from bfinfra.model.documentation import summary
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.kind import Kind
from bfinfra.model.order import Ordered
from bfinfra.model.plan import plain
from bfinfra.model.refs import kinds_named
from bfinfra.model.resource import Spec
from bfinfra.model.suggest import close
from bfinfra.render.data import document
from bfinfra.render.fields import Field, fields, units
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.values import duration, shown

OneKind = type[Kind[Any, Any]]
Kinds = Mapping[str, OneKind]
WIDTH = 110  # columns of running text


def table(kinds: Kinds, style: Style = PLAIN) -> str:
    """One line for each kind: its name, its site in specs/, and what it is."""
    longest, place = (
        max(map(len, kinds), default=0),
        max((len(kind.document) for kind in kinds.values()), default=0),
    )
    lines = [
        (
            f"{style.paint(name.ljust(longest), 'bold')}  {style.paint(kind.document.ljust(place), 'dim')}  "
            f"{summary(kind)}"
        )
        for name, kind in kinds.items()
    ]
    return "\n".join([*lines, "", "The fields of one: bfinfra kinds KIND"])


def one(name: str, kind: OneKind, style: Style = PLAIN) -> str:
    """A kind: what it is, what it refers to, and every field with its type, default and meaning."""
    unit = units({name: kind.Spec})
    refers = ", ".join(sorted(kinds_named(kind.Spec)))
    head = [
        f"{style.paint(name, 'bold')}: {summary(kind)}",
        f"from: {kind.document.heading} (specs/{kind.document}.yaml)",
        *([f"refers to: {refers}"] if refers else []),
        *(f"{word}: {words}" for word, words in order(kind).items()),
        f"becomes ready within {duration(kind.deadline)}, or the apply ends as still waiting",
        "",
    ]
    return "\n".join(
        [*head, *(line for each in _own_first(kind) for line in _field(each, unit(name, each.path), style))]
    )


def field_and_below(name: str, kind: OneKind, path: str) -> list[Field]:
    """The field at a dotted path, with or without [] and *, and the fields in it. Raises BfinfraError, which
    suggests the most similar path.
    """
    paths = {_written(each.path): each for each in fields(kind.Spec)}
    wanted = _written(path)
    if wanted not in paths:
        near = close(wanted, paths)
        raise BfinfraError(
            Problem(f"{name} has no field {path}", next=near or f"bfinfra explain {name} lists its fields")
        )
    return [each for where, each in paths.items() if f"{where}.".startswith(f"{wanted}.")]


def field_text(name: str, kind: OneKind, found: list[Field], style: Style) -> str:
    """A field and those in it, each with its type, default and meaning."""
    unit = units({name: kind.Spec})
    return "\n".join(line for each in found for line in _field(each, unit(name, each.path), style))


def field_data(name: str, found: list[Field]) -> dict[str, Any]:
    """The same for programs."""
    return document("field", kind=name, fields=[_field_data(each) for each in found])


def page(name: str, kind: OneKind, example: str) -> str:
    """A kind as a page of Markdown, with its smallest site."""
    unit = units({name: kind.Spec})
    refers = ", ".join(f"[{each}]({each}.md)" for each in sorted(kinds_named(kind.Spec)))
    head = [
        f"# {name}",
        "",
        summary(kind),
        "",
        f"From: {kind.document.heading} ([specs/{kind.document}.yaml](../../../specs/{kind.document}.yaml)).",
        *([f"Refers to: {refers}."] if refers else []),
        *(f"{word.capitalize()}: {words}" for word, words in order(kind).items()),
        f"Becomes ready within {duration(kind.deadline)}, or the apply ends as still waiting.",
        "",
    ]
    rows = [
        "| field | type | default | meaning |",
        "|---|---|---|---|",
        *(_row(each, unit(name, each.path)) for each in _own_first(kind)),
    ]
    return "\n".join([*head, *rows, "", "## Example", "", "```yaml", example.rstrip(), "```", ""])


def index(kinds: Kinds) -> str:
    """All kinds by source document, as a page of Markdown."""
    lines = ["# Kinds", "", "Made by `script/pages`: the output of `bfinfra kinds`, with an example of each."]
    for each in Document:
        lines += ["", f"## {each.heading}", ""]
        lines += [
            f"- [{name}]({name}.md): {summary(kind)}" for name, kind in kinds.items() if kind.document is each
        ]
    return "\n".join([*lines, ""])


def data(kinds: Kinds) -> dict[str, Any]:
    """Every kind with its fields, as JSON; sizes in bytes, frequencies in MHz, times in seconds."""
    return document(
        "kinds",
        kinds=[
            {
                "kind": name,
                "about": summary(kind),
                "document": kind.document,
                "refers_to": sorted(kinds_named(kind.Spec)),
                "deadline": kind.deadline,
                "fields": [_field_data(each) for each in _own_first(kind)],
            }
            for name, kind in kinds.items()
        ],
    )


def order(kind: OneKind) -> dict[str, str]:
    """Return what its resources provide to others of a site, and what they come after, from the
    docstrings.
    """
    described = {"provides": kind.Spec.provides, "comes after": kind.Spec.requires}
    own = {
        word: method
        for word, method in described.items()
        if method not in (Ordered.provides, Ordered.requires)
    }
    return {word: _running_on(summary(method)) for word, method in own.items()}


def _running_on(sentence: str) -> str:
    """A sentence as the rest of another."""
    return sentence if sentence[1:2].isupper() else f"{sentence[:1].lower()}{sentence[1:]}"


def _written(path: str) -> str:
    """A path as a user writes it: without [] and *."""
    return path.replace("[]", "").replace(".*", "")


def _field_data(found: Field) -> dict[str, Any]:
    return {
        "field": found.path,
        "type": found.type,
        "required": found.required,
        "default": plain(found.default),
        "about": found.about,
    }


def _own_first(kind: OneKind) -> list[Field]:
    """The fields that every kind has come last."""
    return sorted(fields(kind.Spec), key=lambda f: f.path in Spec.model_fields)


def _row(found: Field, unit: str) -> str:
    default = (
        "required"
        if found.required
        else ""
        if found.default in (None, (), {}, "")
        else f"`{shown(found.default, unit)}`"
    )
    return " | ".join(
        (
            "",
            f"`{found.path}`",
            *(each.replace("|", "\\|") for each in (found.type, default, found.about)),
            "",
        )
    ).strip()


def _field(found: Field, unit: str, style: Style) -> list[str]:
    default = "" if found.default in (None, (), {}, "") else f", default {shown(found.default, unit)}"
    rest = ", required" if found.required else default
    indent = "  " * (1 + found.path.count("."))
    head = f"{indent}{style.paint(found.path, 'bold')}: {style.paint(found.type + rest, 'dim')}"
    return [
        head,
        *textwrap.wrap(found.about, WIDTH, initial_indent=indent + "    ", subsequent_indent=indent + "    "),
    ]

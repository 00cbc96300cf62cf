"""Writes text values of a site: in double quotes, or as blocks of lines below their key."""

from __future__ import annotations

import re

from bfinfra.spec.layout.tree import Node

INDENT = 2
HEADER = re.compile(r"[|>](?P<first>[+-]?)(?P<indent>[1-9]?)(?P<last>[+-]?)")


def keeps_blank_lines(node: Node, text: str) -> bool:
    """Return whether the blank lines behind a block are part of it."""
    header = HEADER.match(text, node.start)
    return node.style in ("|", ">") and header is not None and "+" in (header["first"], header["last"])


def lines_of(node: Node, text: str, *, column: int, indent: int) -> list[str]:
    """A scalar's lines, the first as it follows its key. `column`: where its collection is in the
    text; `indent`: where it will.
    """
    written = text[node.start : node.end]
    if node.style in ("|", ">"):
        return _block(node, text, column, indent)
    first, *more = written.split("\n")
    if more:
        margin = (indent + INDENT) * " "
        return [_end(first), *(f"{margin}{_end(line).lstrip()}" if line.strip() else "" for line in more)]
    return [_quoted(written)]


def _end(line: str) -> str:
    """A line without blanks at its end, unless the last of them is escaped."""
    bare = line.rstrip()
    return line if bare.endswith("\\") else bare


def _quoted(written: str) -> str:
    """In double quotes where that needs no escape."""
    if not written.startswith("'"):
        return written
    inner = written[1:-1].replace("''", "'")
    return written if '"' in inner or "\\" in inner or not inner.isprintable() else f'"{inner}"'


def _block(node: Node, text: str, column: int, indent: int) -> list[str]:
    head, *lines = text[node.start : node.end].split("\n")
    header = HEADER.match(head)
    given = int(header["indent"] or 0) if header else 0
    if lines and lines[-1] == "":
        del lines[-1]
    elif header and not header["first"] + header["last"]:
        head = f"{header[0]}-{head[header.end() :]}"  # the file ends without a line break
    filled = next((line for line in lines if line.strip()), "")
    base = max(column, 0) + given if given else len(filled) - len(filled.lstrip(" "))
    if not keeps_blank_lines(node, text):
        while lines and not lines[-1][base:]:
            del lines[-1]
    margin = (indent + (given or INDENT)) * " "
    return [head.rstrip(), *(f"{margin}{line[base:]}" if line[base:] else "" for line in lines)]

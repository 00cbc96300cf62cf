"""The canonical layout of a site's file: order, indentation, blank lines and quotes; comments are kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bfinfra.model.errors import Place, Problem, SiteError
from bfinfra.model.yaml import Node, Unreadable, compose
from bfinfra.spec.layout.tree import Comment, parse
from bfinfra.spec.layout.write import written

BOM = "\ufeff"


def formatted(file: Path, text: str) -> str:
    """The same document in the canonical layout; formatting it again changes nothing. Raises SiteError if the
    file isn't one YAML document, or would mean something else.
    """
    text = text.removeprefix(BOM).replace("\r\n", "\n")
    before = _meaning(file, text)
    root, comments, header = parse(text)
    laid_out = written(text, root, comments, header)
    try:
        same = _meaning(file, laid_out) == before and _words(parse(laid_out)[1]) == _words(comments)
    except SiteError:
        same = False
    if not same:
        raise SiteError(
            Problem(
                "the file can't be laid out anew without changing what it says",
                Place(file, 1, 1),
                "what was written would be read as something else",
                "leave the file as it is, and report it with the file",
            )
        )
    return laid_out


def _words(comments: list[Comment]) -> Counter[str]:
    return Counter(each.text for each in comments)


def _meaning(file: Path, text: str) -> object:
    """The values of the file, without places and without the order of keys. Raises SiteError."""
    try:
        root, problems = compose(file, text)
    except Unreadable as error:
        raise SiteError(error.problem) from None
    if problems:
        raise SiteError(*problems)
    return None if root is None else _plain(root)


def _plain(node: Node) -> object:
    """A node as values that can be compared: a scalar is its text and whether it is quoted."""
    if isinstance(node.value, dict):
        return {name: _plain(entry.node) for name, entry in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(each) for each in node.value]
    return node.value, node.plainly

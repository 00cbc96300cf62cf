"""Formats read by their own parsers: what a reader of each finds in a text that bfinfra wrote."""

from __future__ import annotations

import functools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import cmarkgfm
from cmarkgfm.cmark import Options
from selectolax.lexbor import LexborHTMLParser

APART = "\u200b"  # markdown.prose writes it after an @; in no foreign name it comes through `safe`
Part = tuple[str, tuple[tuple[str, str | None], ...]]
"""A tag with its attributes; a text has the tag "" and its words as the only attribute."""

JUNIT: dict[str, set[str]] = {
    "testsuite": {"name", "timestamp", "tests", "failures", "errors", "skipped"},
    "testcase": {"classname", "name"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
    "system-out": set(),
}
"""Of the elements and attributes in junit-10.xsd of Jenkins' xunit plug-in, those that bfinfra writes."""
LINES = re.compile(r"\r\n|\r|\n")
GITLAB = re.compile(r"section_(start|end):\d+:[a-zA-Z0-9_.-]+(\[[^\]]*\])?\r\x1b\[0K")
"""lib/gitlab/regex.rb: logs_section_prefix_regex, _options_regex, _suffix_regex."""


@functools.lru_cache(maxsize=64)  # each document is compared with the same plain one
def html(text: str) -> list[Part]:
    """What a browser makes of a page: tags with attributes and texts, in their order."""
    found: list[Part] = []
    for node in LexborHTMLParser(text).root.traverse(include_text=True):  # type: ignore[union-attr]  # a page has a root
        if node.tag == "wbr":  # a place for the end of a line, in a name
            continue
        if node.tag != "-text":
            found.append((str(node.tag), tuple(sorted(node.attributes.items()))))
        elif found and not found[-1][0]:
            found[-1] = _text(str(found[-1][1][0][1]) + str(node.text()))
        else:
            found.append(_text(str(node.text())))
    return [each for each in found if each[0] or str(each[1][0][1]).strip()]


@functools.lru_cache(maxsize=64)
def markdown(text: str) -> list[Part]:
    """What GitHub makes of Markdown: its own parser, and of the result what a browser does. Comments, which it
    removes, are left out; so is the space that breaks mentions.
    """
    made = cmarkgfm.github_flavored_markdown_to_html(
        text, Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES
    )
    plain = html(made.replace("<!-- -->", "").replace(APART, ""))
    return [(tag, _text(" ".join(str(found[0][1]).split()))[1] if not tag else found) for tag, found in plain]


def _text(words: str) -> Part:
    return "", (("words", words),)


def xml(text: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Elements of a document in their order: name, attributes, text."""
    for each in ET.fromstring(text.encode()).iter():
        yield each.tag, dict(each.attrib), (each.text or "").strip()


def commands(log: str) -> list[str]:
    """The lines of a log in which a CI system finds something to do.

    GitHub: src/Runner.Common/ActionCommand.cs of actions/runner, with any name as a known one: TryParseV2 trims a
    line, `::` begins it and comes again; TryParse looks for `##[` and a `]` after it, anywhere. Azure: TryParse in
    Command.cs of microsoft/azure-pipelines-agent: the same with `##vso[`. Its page, and TeamCity's service messages:
    `##[group]`, `##teamcity[`. GitLab: a section needs its escape sequence. Jenkins: hudson/console/ConsoleNote.java
    begins notes with `ESC [8mha:`. Buildkite: `ESC ]1338;` shows an image, `ESC ]1339;` a link.
    """
    return [
        line
        for line in LINES.split(log)
        if (line.strip().startswith("::") and "::" in line.strip()[2:])
        or re.search(r"##\w*\[.*\]", line)
        or "\x1b[8mha:" in line
        or "\x1b]" in line
    ] + GITLAB.findall(log)

"""Output: text, json, jsonl or markdown on stdout; problems on stderr; progress on the terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

from bfinfra.cli import output
from bfinfra.model.records import dataclass
from bfinfra.model.redact import redact
from bfinfra.render.style import PLAIN, Style

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.errors import BfinfraError
    from bfinfra.model.events import Event
    from bfinfra.model.order import Before
    from bfinfra.model.outcome import Outcome
    from bfinfra.model.plan import Plan
    from bfinfra.model.site import Site
    from bfinfra.model.surveying import SurveyProgress


@dataclass(frozen=True)
class Screen:
    """The output of one run."""

    output: str
    verbose: bool
    plain: bool

    @classmethod
    def of(cls, args: argparse.Namespace) -> Screen:
        """The Screen for these arguments and environment variables."""
        plain = args.no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return cls(args.output, args.verbose, plain)

    def style(self, stream: TextIO) -> Style:
        """The style of a stream: colours on a terminal; units from the kinds."""
        return Style(not self.plain and stream.isatty(), self.verbose, unit)

    def show(
        self,
        text: Callable[[Style], str],
        data: Callable[[], Mapping[str, Any]],
        *,
        markdown: Callable[[Style], str] | None = None,
        lines: Callable[[], Iterable[Mapping[str, Any]]] | None = None,
    ) -> None:
        """Print a value in the chosen form. A value without lines of its own is one line; without Markdown of
        its own it is a block of code.
        """
        if self.output in ("json", "jsonl"):
            from bfinfra.render import data as documents

            listed = lines() if lines and self.output == "jsonl" else [data()]
            for each in listed:
                output.exact(documents.text(each) if self.output == "json" else documents.line(each))
        elif self.output == "markdown":
            style = Style(False, self.verbose, unit)
            output.text(markdown(style) if markdown else _as_code(text(style)), end="")
        else:
            output.text(text(self.style(sys.stdout)))

    def plan(self, found: Plan) -> None:
        """Print a plan."""
        self.show(
            lambda style: _form("text").plan(found, style),
            lambda: _form("data").plan(found),
            markdown=lambda style: _form("markdown").plan(found, style),
            lines=lambda: _form("data").plan_lines(found),
        )

    def plan_to_people(self, found: Plan) -> None:
        """Print a plan that the user is asked about; to stderr if stdout is for programs."""
        from bfinfra.render import text

        stream = sys.stdout if self.output == "text" else sys.stderr
        output.text(text.plan(found, self.style(stream)), stream, flush=True)

    def outcome(self, found: Outcome, events: list[Event]) -> None:
        """Print the end of an apply."""
        from bfinfra.render import data, markdown, summary

        self.show(
            lambda style: summary.outcome(found, events, style),
            lambda: data.outcome(found, events),
            markdown=lambda _: markdown.outcome(found, events),
        )

    def error(self, error: BfinfraError) -> None:
        """Print problems to stderr; as a document with --output json."""
        from bfinfra.render import data, problems

        if self.output in ("json", "jsonl"):
            written = (data.text if self.output == "json" else data.line)(data.error(error))
            output.exact(written, sys.stderr)
        else:
            output.text(problems.problems(error.problems, self.style(sys.stderr)), sys.stderr)

    @staticmethod
    def say(*lines: str) -> None:
        """Print a message for people to stderr. Each is one line, whatever is in it."""
        output.error(*lines)

    def write(self, name: str, text: str) -> None:
        """Write a report into a file. Raises BfinfraError."""
        from bfinfra.model.files import write_named

        write_named(name, redact(text))
        self.say(f"wrote {name}")

    def page(self, name: str, site: Site, made: Callable[[Before, Style], str]) -> None:
        """Write an HTML page into a file. `made`: makes the page from the site's order and the style."""
        self.write(name, drawn(site, made))

    @contextlib.contextmanager
    def progress(self, found: Plan) -> Iterator[Callable[[Event], None]]:
        """A sink that shows events: a board on a terminal, lines elsewhere, documents with --output jsonl."""
        stream = sys.stdout if self.output in ("text", "jsonl") else sys.stderr
        if self.output == "jsonl":
            yield self._documents
        elif stream.isatty() and os.environ.get("TERM") != "dumb":
            from bfinfra.render.live import Board

            with Board(found, stream, colour=not self.plain) as board:
                yield board
        else:
            from bfinfra.render.lines import Lines

            yield Lines(found, lambda line: output.text(line, stream, flush=True))

    def surveying(self, progress: SurveyProgress) -> contextlib.AbstractContextManager[object]:
        """While a survey goes on: how far it is, where standard error is a terminal; else which servers it
        waits for.
        """
        from bfinfra.render.surveying import SurveyLine, SurveyNotes

        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            return SurveyNotes(progress, self.say)

        def shows(words: Callable[[], str]) -> contextlib.AbstractContextManager[object]:
            from bfinfra.render.live import line

            return line(words, sys.stderr, colour=not self.plain)

        return SurveyLine(progress, shows)

    @staticmethod
    def _documents(event: Event) -> None:
        from bfinfra.render import data

        output.exact(data.line(data.event(event)), flush=True)


Attempt = Callable[[Callable[[], None]], None]


@contextlib.contextmanager
def all_of() -> Iterator[Attempt]:
    """A context whose end raises the BfinfraErrors of what was attempted in it, all as one: that one file
    can't be written stops no other, and nothing that is printed.
    """
    from bfinfra.model.errors import BfinfraError, Problem

    problems: list[Problem] = []

    def attempt(do: Callable[[], None]) -> None:
        try:
            do()
        except BfinfraError as error:
            problems.extend(error.problems)

    yield attempt
    if problems:
        raise BfinfraError(*problems)


def _as_code(text: str) -> str:
    from bfinfra.render.markdown import fenced

    return "\n".join(fenced(text, "text")) + "\n"


def drawn(site: Site, made: Callable[[Before, Style], str]) -> str:
    """The page that `made` makes from the site's order and the style."""
    from bfinfra.engine.graph import waits

    return made(waits(site.resources, {}), Style(units=unit))


def _form(name: str) -> Any:
    """The module that renders a form; the others aren't imported."""
    return import_module(f"bfinfra.render.{name}")


def unit(kind: str, field: str) -> str:
    """The unit of a field, from the kinds' annotations. A kind is imported when its first number is shown."""
    from bfinfra.kinds import spec
    from bfinfra.render import fields

    try:
        return fields.unit(spec(kind), field)
    except KeyError:
        return PLAIN.units(kind, field)

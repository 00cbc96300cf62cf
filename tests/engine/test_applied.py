"""The Spec that was last applied, made again from what a mark holds and from what the file still says."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from bfinfra.engine.applied import as_applied, spec_of
from bfinfra.model import resource
from bfinfra.model.mark import Mark


class Drawing:
    """A file where it was found; a mark holds only its name."""

    def __init__(self, name: str, folder: str = "") -> None:
        self.name, self.folder = name, folder


def found(value: Any) -> Drawing:
    return value if isinstance(value, Drawing) else Drawing(value)


class Plank(resource.Spec):
    size: int = 1
    drawing: Annotated[Any, BeforeValidator(found), PlainSerializer(lambda each: each.name)] = None


WRITTEN = Plank(size=2, drawing=Drawing("plank.svg", "/home/anna"), after=("box/b",))


def marked(**applied: Any) -> Mark:
    return Mark("toys", "plank/a", applied)


def test_a_file_that_is_still_the_same_is_found_where_the_site_has_it():
    then = as_applied(Plank, marked(size=1, drawing="plank.svg"), WRITTEN)
    assert (then.size, then.drawing.folder) == (1, "/home/anna")
    assert spec_of(Plank, {"drawing": "plank.svg"}, WRITTEN).drawing.folder == "/home/anna"


def test_a_file_that_was_another_one_is_not_looked_for_where_the_new_one_is():
    then = as_applied(Plank, marked(size=2, drawing="old.svg"), WRITTEN)
    assert (then.drawing.name, then.drawing.folder) == ("old.svg", "")


def test_the_order_is_the_files_as_no_mark_holds_it():
    assert as_applied(Plank, marked(size=1), WRITTEN).after == ("box/b",)
    assert as_applied(Plank, marked(size=1), None).after == ()


def test_what_is_as_it_was_applied_is_what_is_written():
    assert as_applied(Plank, marked(size=2, drawing="plank.svg"), WRITTEN) is WRITTEN


def test_where_a_mark_says_nothing_readable_the_file_holds():
    for mark in (None, Mark("toys", "plank/a"), marked(size="long"), marked(shape="round")):
        assert as_applied(Plank, mark, WRITTEN) is WRITTEN
        assert as_applied(Plank, mark, None) is None

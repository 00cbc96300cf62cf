"""What is written under fields is found when it is asked for."""

from __future__ import annotations

from pydantic import BaseModel

from bfinfra.kinds import names, spec
from bfinfra.model.documentation import documentation


class Plant(BaseModel):
    """A plant."""

    height: int = 0
    """In metres,
    rounded."""
    name: str = ""
    latin: str = ""
    "Its name in Latin."

    def grow(self) -> int:
        """Not of a field."""
        return self.height + 1


class Tree(Plant):
    rings: int = 0
    """One a year."""
    height: int = 3


def test_the_docstring_under_a_field_is_its_documentation() -> None:
    assert documentation(Plant) == {"height": "In metres, rounded.", "latin": "Its name in Latin."}


def test_fields_of_a_base_are_documented_there() -> None:
    assert documentation(Tree) == {
        "height": "In metres, rounded.",
        "latin": "Its name in Latin.",
        "rings": "One a year.",
    }


def test_a_class_inside_a_function_has_its_source_too() -> None:
    class Inner(BaseModel):
        leaf: str = ""
        """Green."""

    assert documentation(Inner) == {"leaf": "Green."}


def test_a_model_without_source_has_no_documentation() -> None:
    made = type("Made", (BaseModel,), {"__annotations__": {"a": int}})
    assert documentation(made) == {}


def test_every_field_of_every_kind_is_documented() -> None:
    bare = [
        f"{kind}.{field}"
        for kind in names()
        for field in spec(kind).model_fields
        if field not in documentation(spec(kind))
    ]
    assert not bare

"""The world file's schema: everything that an editor shows for a world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from sandbox.test_world import small

from bfinfra.sandbox import world_schema


def objects(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "World", schema
    yield from schema["definitions"].items()


def test_every_field_of_a_world_is_described() -> None:
    bare = [
        f"{name}.{field}"
        for name, each in objects(world_schema.schema())
        for field, about in each["properties"].items()
        if not about.get("description", "").endswith(".")
    ]
    assert bare == []


def test_every_part_of_a_world_is_described() -> None:
    assert [name for name, each in objects(world_schema.schema()) if not each["description"]] == []


def test_a_description_is_the_docstring_under_its_field() -> None:
    fields = world_schema.schema()["definitions"]["PciDevice"]["properties"]
    assert fields["class"]["description"] == "PCI class. Classes 0x0300 to 0x03ff are GPUs."


def test_a_described_part_is_still_checked() -> None:
    judge = jsonschema.Draft7Validator(world_schema.schema())
    world = small()
    assert judge.is_valid(world)
    world["vcenter"]["colour"] = "red"
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        judge.validate(world)

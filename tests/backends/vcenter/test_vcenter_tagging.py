"""Tags as they are read while others remove some of them."""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.backends.vcenter.tagging import BEARERS, CATEGORIES, Tagging
from bfinfra.model.errors import Malformed, Missing


class Vanishing:
    """A vCenter with one category, whose first tag is removed after the tags were listed."""

    server = "vc"

    def get(self, path: str) -> Any:
        if path == CATEGORIES:
            return ["home"]
        name = path.rpartition("/")[2]
        return {"id": name, "name": name, "description": "", "category_id": "home", "cardinality": "MULTIPLE"}

    def post(self, path: str, body: dict[str, Any], params: dict[str, str]) -> Any:
        if path != BEARERS:
            return ["gone", "kept"]
        if "gone" in body["tag_ids"]:
            raise Missing("the tag 'gone' does not exist", server="vc")
        return [{"tag_id": "kept", "object_ids": [{"type": "Datastore", "id": "datastore-1"}]}]


def test_a_tag_that_is_removed_while_tags_are_read_hides_no_other() -> None:
    (home,) = Tagging(Vanishing()).read(lambda name, description: True)  # type: ignore[arg-type]  # it answers what Tagging asks
    found = home.tag("kept")
    assert found is not None
    assert found.datastores == {"datastore-1"}


class Lying(Vanishing):
    """A vCenter whose list of categories is something else."""

    def __init__(self, categories: object) -> None:
        self.categories = categories
        self.asked = 0

    def get(self, path: str) -> Any:
        self.asked += 1
        return self.categories if path == CATEGORIES else super().get(path)


@pytest.mark.parametrize(
    "categories",
    [[{}] * (1 << 20), "x" * 70_000, {"a": 1}, [None]],
    ids=["no ids", "text", "a mapping", "none"],
)
def test_a_list_that_can_be_none_is_refused_before_anything_is_asked_for_each(categories: object) -> None:
    server = Lying(categories)
    with pytest.raises(Malformed, match="the tags can't be read"):
        Tagging(server).read(lambda name, description: True)  # type: ignore[arg-type]  # it answers what Tagging asks
    assert server.asked == 1

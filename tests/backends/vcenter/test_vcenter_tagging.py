"""Tags as they are read while others remove some of them."""

from __future__ import annotations

from typing import Any

from bfinfra.backends.vcenter.tagging import BEARERS, CATEGORIES, Tagging
from bfinfra.model.errors import Missing


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

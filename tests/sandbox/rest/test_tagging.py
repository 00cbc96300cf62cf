"""Tags: shaped as the official SDK says, and refused where vCenter refuses; a tag is no write to what bears
it.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from asking import Rest
from judge import misfits

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the SDK reads its own resources in an old way
    from com.vmware.cis import tagging_client

CATEGORY, TAG, ON = "/api/cis/tagging/category", "/api/cis/tagging/tag", "/api/cis/tagging/tag-association"


def post(rest: Rest, path: str, body: object) -> Any:
    answer = rest.call("POST", path, body)
    assert answer.status < 300, answer
    return answer.data


def refused(rest: Rest, method: str, path: str, body: object) -> str:
    return str(rest.call(method, path, body).data["error_type"])


def made(rest: Rest, cardinality: str = "SINGLE", types: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """A category with two tags."""
    category = post(
        rest,
        CATEGORY,
        {
            "name": "owner",
            "description": "whose",
            "cardinality": cardinality,
            "associable_types": list(types),
        },
    )
    return category, *(
        post(rest, TAG, {"name": name, "description": "", "category_id": category}) for name in ("a", "b")
    )


def host(rest: Rest) -> dict[str, str]:
    return {"id": rest.get("/api/vcenter/host")[0]["host"], "type": "HostSystem"}


def test_answers_fit_the_types_of_the_sdk(rest: Rest) -> None:
    category, tag, _ = made(rest)
    bearer = host(rest)
    post(rest, f"{ON}/{tag}?action=attach", {"object_id": bearer})
    many = post(
        rest,
        f"{ON}?action=attach-multiple-tags-to-object",
        {"object_id": bearer, "tag_ids": [tag, "urn:nothing"]},
    )
    for kind, value in (
        (tagging_client.CategoryModel, rest.get(f"{CATEGORY}/{category}")),
        (tagging_client.TagModel, rest.get(f"{TAG}/{tag}")),
        (tagging_client.TagAssociation.BatchResult, many),
        (
            tagging_client.TagAssociation.TagToObjects,
            post(rest, f"{ON}?action=list-attached-objects-on-tags", {"tag_ids": [tag]})[0],
        ),
        (
            tagging_client.TagAssociation.ObjectToTags,
            post(rest, f"{ON}?action=list-attached-tags-on-objects", {"object_ids": [bearer]})[0],
        ),
    ):
        assert misfits(kind, value) == [], kind
    assert (many["success"], len(many["error_messages"])) == (False, 1)
    assert post(rest, f"{ON}/{tag}?action=list-attached-objects", {}) == [bearer]


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        (
            CATEGORY,
            {"name": "owner", "description": "", "cardinality": "SINGLE", "associable_types": []},
            "ALREADY_EXISTS",
        ),
        (
            CATEGORY,
            {"name": "x", "description": "", "cardinality": "SOME", "associable_types": []},
            "INVALID_ARGUMENT",
        ),
        (TAG, {"name": "c", "description": "", "category_id": "urn:nothing"}, "NOT_FOUND"),
        (TAG, {"name": "c", "description": ""}, "INVALID_ARGUMENT"),
        (
            f"{ON}/urn:nothing?action=attach",
            {"object_id": {"id": "host-1", "type": "HostSystem"}},
            "NOT_FOUND",
        ),
    ],
)
def test_what_can_not_be_is_refused(path: str, body: dict[str, Any], why: str, rest: Rest) -> None:
    made(rest)
    assert refused(rest, "POST", path, body) == why


def test_a_category_says_how_many_tags_and_for_what(rest: Rest) -> None:
    category, first, second = made(rest, types=("HostSystem",))
    bearer, cluster = (
        host(rest),
        {"id": rest.get("/api/vcenter/cluster")[0]["cluster"], "type": "ClusterComputeResource"},
    )
    post(rest, f"{ON}/{first}?action=attach", {"object_id": bearer})
    assert refused(rest, "POST", f"{ON}/{second}?action=attach", {"object_id": bearer}) == "INVALID_ARGUMENT"
    assert refused(rest, "POST", f"{ON}/{first}?action=attach", {"object_id": cluster}) == "INVALID_ARGUMENT"
    assert rest.call("PATCH", f"{CATEGORY}/{category}", {"cardinality": "MULTIPLE"}).status == 204
    post(rest, f"{ON}/{second}?action=attach", {"object_id": bearer})
    assert refused(rest, "PATCH", f"{CATEGORY}/{category}", {"cardinality": "SINGLE"}) == "INVALID_ARGUMENT"


def test_a_category_takes_its_tags_along(rest: Rest) -> None:
    category, tag, _ = made(rest)
    bearer = host(rest)
    post(rest, f"{ON}/{tag}?action=attach", {"object_id": bearer})
    assert rest.call("DELETE", f"{CATEGORY}/{category}").status == 204
    assert category not in rest.get(CATEGORY)
    assert tag not in rest.get(TAG)
    assert post(rest, f"{ON}?action=list-attached-tags", {"object_id": bearer}) == []

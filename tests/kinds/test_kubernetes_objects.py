"""What a write answered is as good as a look, where it is the object that was written."""

from __future__ import annotations

import pytest

from bfinfra.kinds.cluster.base.objects import place_of, stands_at, version_of

PLACE = ("default", "token")
SECRET = {"metadata": {"namespace": "default", "name": "token", "uid": "u", "resourceVersion": "7"}}


def test_an_object_says_where_it_stands_and_in_which_version():
    assert stands_at(SECRET, place_of(SECRET))
    assert version_of(SECRET) == {"uid": "u", "resourceVersion": "7"}


@pytest.mark.parametrize(
    "answer",
    [
        {"items": [None]},
        {"kind": "Status", "metadata": 5},
        {"metadata": {}},
        {"metadata": {**SECRET["metadata"], "name": "another"}},
        {"metadata": {"namespace": "default", "name": "token"}},
    ],
)
def test_what_is_not_that_object_tells_nothing(answer):
    assert not stands_at(answer, PLACE)

"""What a write answered is as good as a look, where it is the object that was written."""

from __future__ import annotations

import pytest

from bfinfra.kinds.cluster.base.objects import is_at, place_of, version_of

PLACE = ("default", "token")
SECRET = {"metadata": {"namespace": "default", "name": "token", "uid": "u", "resourceVersion": "7"}}


def test_an_object_knows_its_place_and_its_version():
    assert is_at(SECRET, place_of(SECRET))
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
def test_another_answer_is_not_taken_for_the_object(answer):
    assert not is_at(answer, PLACE)

"""What a write answered is as good as a look, where it is the object that was written."""

from __future__ import annotations

import pytest

from bfinfra.kinds.cluster.base.sights import Sights
from bfinfra.model.endpoint import Endpoint

HOME, PLACE = Endpoint("10.1.0.1"), ("default", "token")
SECRET = {"metadata": {"namespace": "default", "name": "token", "uid": "u", "resourceVersion": "7"}}


def test_an_object_is_answered_once_and_so_is_one_that_is_gone():
    sights = Sights()
    for answer in (SECRET, None):
        sights.wrote(HOME, PLACE, answer)
        assert sights.answer(HOME, PLACE) == (answer,)
        assert sights.answer(HOME, PLACE) == ()


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
def test_what_is_not_that_object_is_forgotten(answer):
    sights = Sights()
    sights.wrote(HOME, PLACE, answer)
    assert sights.answer(HOME, PLACE) == ()

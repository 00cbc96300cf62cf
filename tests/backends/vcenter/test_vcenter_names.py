"""Names of objects in vCenter: as people write them, as they are sent, and as vCenter keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfinfra.backends.vcenter.names import sent, written


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        ("a%2fb", "a/b"),
        ("a%2Fb", "a/b"),
        ("a%5cb", "a\\b"),
        ("50%25", "50%"),
        ("a%252fb", "a%2fb"),
        ("a%20b", "a%20b"),
        (None, ""),
    ],
)
def test_a_name_is_read_as_it_was_written(kept, name):
    assert written(kept) == name


@given(st.text(min_size=1, max_size=80))
def test_what_is_sent_is_found_again_by_its_name(name):
    kept = sent(name).replace("/", "%2f").replace("\\", "%5c")  # as vCenter escapes what isn't yet
    assert written(kept) == name

from __future__ import annotations

import base64
import zlib

import pytest

from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark, above, below

MARK = Mark("poc", "supervisor_namespace/cnasg")


def test_a_mark_survives_its_line():
    committed = MARK.committed({"cluster": "compute", "limits": {"cpu": "48GHz"}, "text": "ü \n ="})
    assert Mark.decode(committed.encode()) == committed
    assert Mark.decode(MARK.encode()) == MARK


def test_a_mark_is_one_line():
    assert "\n" not in MARK.committed({"text": "a\nb"}).encode()


def test_the_users_text_is_above_the_mark():
    text = below("for the team\nof two lines", MARK)
    assert above(text) == "for the team\nof two lines"
    assert Mark.decode(text) == MARK
    assert below("", MARK) == MARK.encode()
    assert above(None) == ""


def test_no_mark_is_no_mark():
    assert Mark.decode(None) is None
    assert Mark.decode("made by hand, bfinfra:2 site=x") is None


def test_a_spoiled_commit_counts_as_unfinished_work():
    assert Mark.decode(MARK.encode() + " applied=AAAA").applied is None
    assert (
        Mark.decode(MARK.encode() + " applied=" + base64.b64encode(zlib.compress(b"[1]")).decode()).applied
        is None
    )


def test_a_bomb_in_the_mark_is_not_unpacked():
    lists = base64.b64encode(zlib.compress(b'{"a":[' + b"[]," * 300_000 + b"0]}")).decode()
    assert Mark.decode(f"{MARK.encode()} applied={lists}").applied is None
    bomb = base64.b64encode(zlib.compress(b'{"a":"' + b"a" * (1 << 24) + b'"}')).decode()
    assert Mark.decode(f"{MARK.encode()} applied={bomb}").applied is None


def test_a_mark_counts_only_on_the_object_that_it_was_written_for():
    committed = MARK.committed({"a": 1})
    read = Mark.decode(committed.on("uuid-1").encode())
    assert read.where("uuid-1") == committed
    assert read.where("uuid-2") is None
    assert Mark.decode(committed.encode()).where("uuid-2") == committed, "one of before says nothing of it"
    assert Mark.site_in(committed.on("uuid-1").encode(), "uuid-1") == "poc"
    assert Mark.site_in(committed.on("uuid-1").encode(), "uuid-2") is None


def test_the_owner_is_read_without_what_was_applied():
    committed = MARK.committed({"a": 1}).on("uuid-1")
    assert Mark.owner_in(f"words above\n{committed.encode()}") == MARK.on("uuid-1")
    assert Mark.owner_in(f"{MARK.encode()} applied=no-zlib") == MARK
    assert Mark.owner_in("words") is Mark.owner_in(None) is None


def test_a_mark_gives_a_name_only_to_its_own_site_and_kind():
    assert MARK.name_of("poc", "supervisor_namespace") == "cnasg"
    assert MARK.name_of("another", "supervisor_namespace") is None
    assert MARK.name_of("poc", "supervisor") is None, "a kind whose name begins like another's"


def test_what_was_copied_with_a_description_is_not_the_marks_own():
    assert Mark.own(MARK.encode(), "supervisor_namespace/cnasg") == MARK
    assert Mark.own(MARK.encode(), "supervisor_namespace/copy") is None


def test_what_another_resource_looks_after_is_refused():
    MARK.refuse_others(None, "its registry is looked after by another")
    MARK.refuse_others(MARK.committed({"a": 1}), "its registry is looked after by another")
    for other in (Mark("another", MARK.address), Mark("poc", "supervisor_namespace/other")):
        with pytest.raises(Refusal, match="looked after by another") as refused:
            MARK.refuse_others(other, "its registry is looked after by another", "cluster")
        assert refused.value.field == "cluster"
        assert f"it belongs to {other.address} of {other.site}" in str(refused.value)

"""The mark is one line that says whose an object is; copies, strangers and spoiled lines don't pass for it."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace

import pytest

from bfinfra.model.errors import Refusal
from bfinfra.model.mark import LARGEST, MOST, Mark, above, below, common

MARK = Mark("poc", "supervisor_namespace/cnasg")


def decoded(text: str) -> Mark:
    found = Mark.decode(text)
    assert found is not None
    return found


def test_a_mark_survives_its_line() -> None:
    committed = MARK.committed({"cluster": "compute", "limits": {"cpu": "48GHz"}, "text": "ü \n ="})
    assert Mark.decode(committed.encode()) == committed
    assert Mark.decode(MARK.encode()) == MARK


def test_a_mark_is_one_line() -> None:
    assert "\n" not in MARK.committed({"text": "a\nb"}).encode()


def test_the_users_text_is_above_the_mark() -> None:
    text = below("for the team\nof two lines", MARK)
    assert above(text) == "for the team\nof two lines"
    assert Mark.decode(text) == MARK
    assert below("X: for the team", MARK) == f"X: for the team\n{MARK.encode()}"
    assert below("", MARK) == MARK.encode()
    assert above(None) == ""


def test_the_blanks_before_the_users_text_stay() -> None:
    assert above(below("  indented\n\tby a tab", MARK)) == "  indented\n\tby a tab"


def test_no_mark_is_no_mark() -> None:
    assert Mark.decode(None) is None
    assert Mark.decode("made by hand, bfinfra:2 site=x") is None


def test_a_spoiled_commit_counts_as_unfinished_work() -> None:
    assert decoded(MARK.encode() + " applied=AAAA").applied is None
    assert (
        decoded(MARK.encode() + " applied=" + base64.b64encode(zlib.compress(b"[1]")).decode()).applied
        is None
    )


def test_a_bomb_in_the_mark_is_not_unpacked() -> None:
    lists = base64.b64encode(zlib.compress(b'{"a":[' + b"[]," * 300_000 + b"0]}")).decode()
    assert decoded(f"{MARK.encode()} applied={lists}").applied is None
    bomb = base64.b64encode(zlib.compress(b'{"a":"' + b"a" * (1 << 24) + b'"}')).decode()
    assert decoded(f"{MARK.encode()} applied={bomb}").applied is None


def test_a_mark_counts_only_on_the_object_that_it_was_written_for() -> None:
    committed = MARK.committed({"a": 1})
    read = decoded(committed.on("uuid-1").encode())
    assert read.where("uuid-1") == committed
    assert read.where("uuid-2") is None
    assert decoded(committed.encode()).where("uuid-2") == committed, "one of before says nothing of it"
    assert Mark.site_in(committed.on("uuid-1").encode(), "uuid-1") == "poc"
    assert Mark.site_in(committed.on("uuid-1").encode(), "uuid-2") is None


def test_the_owner_is_read_without_what_was_applied() -> None:
    committed = MARK.committed({"a": 1}).on("uuid-1")
    assert Mark.owner_in(f"words above\n{committed.encode()}") == MARK.on("uuid-1")
    assert Mark.owner_in(f"{MARK.encode()} applied=no-zlib") == MARK
    assert Mark.owner_in("words") is Mark.owner_in(None) is None


def test_a_mark_gives_a_name_only_to_its_own_site_and_kind() -> None:
    assert MARK.name_of("poc", "supervisor_namespace") == "cnasg"
    assert MARK.name_of("another", "supervisor_namespace") is None
    assert MARK.name_of("poc", "supervisor") is None, "a kind whose name begins like another's"


def test_what_was_copied_with_a_description_is_not_the_marks_own() -> None:
    assert Mark.own(MARK.encode(), "supervisor_namespace/cnasg") == MARK
    assert Mark.own(MARK.encode(), "supervisor_namespace/copy") is None


def test_what_another_resource_looks_after_is_refused() -> None:
    MARK.refuse_others(None, "its registry is looked after by another")
    MARK.refuse_others(MARK.committed({"a": 1}), "its registry is looked after by another")
    for other in (Mark("another", MARK.address), Mark("poc", "supervisor_namespace/other")):
        with pytest.raises(Refusal, match="looked after by another") as refused:
            MARK.refuse_others(other, "its registry is looked after by another", "cluster")
        assert refused.value.field == "cluster"
        assert f"it belongs to {other.address} of {other.site}; remove it from one of the two" in str(
            refused.value
        )
    with pytest.raises(Refusal) as refused:
        MARK.refuse_others(Mark("another", MARK.address), "its registry is looked after by another")
    assert refused.value.field == "", "it is of no field"


def test_the_same_content_makes_the_same_line_whatever_its_order() -> None:
    one, two = MARK.committed({"a": 1, "b": 2}), MARK.committed({"b": 2, "a": 1})
    assert one.encode() == two.encode()


def test_an_adoption_is_never_written() -> None:
    adopting = Mark("poc", MARK.address, adopting=True)
    assert Mark.decode(adopting.encode()) == MARK
    assert not MARK.adopting


def test_unfinished_work_is_told_from_work_that_had_nothing_to_say() -> None:
    assert Mark.decode(MARK.committed({}).encode()) == MARK.committed({})
    assert MARK.committed({}).pending == MARK != MARK.committed({})


@pytest.mark.parametrize("spoiled", ["-", "_", "=A"])
def test_letters_that_no_mark_has_spoil_it(spoiled: str) -> None:
    line = MARK.committed({"a": 1}).encode()
    assert decoded(line).applied == {"a": 1}
    assert decoded(line.replace("applied=", f"applied={spoiled}")).applied is None


@pytest.mark.parametrize(("bytes_in_it", "read"), [(LARGEST // 2, True), (2 * LARGEST, False)])
def test_a_mark_of_up_to_a_megabyte_is_unpacked(bytes_in_it: int, read: bool) -> None:
    assert LARGEST == 1 << 20
    line = MARK.committed({"a": "a" * bytes_in_it}).encode()
    assert (decoded(line).applied is not None) is read


@pytest.mark.parametrize(("values", "read"), [(MOST + 1, True), (MOST + 2, False)])
def test_a_mark_of_up_to_a_hundred_thousand_values_is_unpacked(values: int, read: bool) -> None:
    assert MOST == 100_000
    assert (decoded(MARK.committed({"a": [0] * values}).encode()).applied is not None) is read


def test_the_site_and_the_address_are_read_without_unpacking() -> None:
    line = f"{MARK.encode()} applied=no-zlib id=uuid-1"
    assert (Mark.site_in(line), Mark.address_in(f"above\n{line}")) == ("poc", MARK.address)
    assert Mark.site_in(line, "uuid-2") is None
    assert Mark.site_in(MARK.encode(), "uuid-2") == "poc", "one of before has no id"
    for nothing in (None, "words"):
        assert Mark.site_in(nothing) is Mark.site_in(nothing, "uuid-1") is Mark.address_in(nothing) is None


def test_an_object_without_a_mark_is_nobodys_own() -> None:
    assert Mark.own(None, MARK.address) is Mark.own("words", MARK.address) is None


def test_a_description_has_one_mark_the_last_that_was_written() -> None:
    other = Mark("poc", "supervisor_namespace/other")
    twice = below(below("for the team", MARK), other)
    assert twice == f"for the team\n{other.encode()}"
    assert "a mark within a line" in above(f"a mark within a line: {MARK.encode()}"), (
        "that is the user's text"
    )


def test_an_id_changes_neither_the_owner_nor_what_was_applied() -> None:
    committed = MARK.committed({"a": 1})
    assert (committed.on("uuid-1").id, committed.on("uuid-1").owner) == ("uuid-1", MARK.owner)
    assert committed.on("uuid-1").applied == committed.applied


# One resource of several objects.

DONE, FOREIGN = MARK.committed({"a": 1}), Mark("another", "host_option/x")


@pytest.mark.parametrize(
    ("marks", "found"),
    [
        ((), None),
        ((DONE,), DONE),
        ((DONE, DONE), DONE),
        ((DONE, MARK.committed({"a": 2})), MARK),
        ((DONE, MARK), MARK),
        ((MARK, DONE), MARK),
        ((DONE, None), None),
        ((None, DONE), None),
        ((DONE, FOREIGN), FOREIGN),
        ((FOREIGN, DONE), DONE),
        ((DONE, DONE, FOREIGN), FOREIGN),
    ],
)
def test_several_objects_have_a_mark_in_common_only_if_each_has_it(
    marks: tuple[Mark | None, ...], found: Mark | None
) -> None:
    assert common(marks) == found


@pytest.mark.parametrize("name", ["my lib", "100%", "%20", "%2520", "a %25 b", "ä  ö", "a b c"])
def test_a_name_with_blanks_is_read_as_it_was_written(name: str) -> None:
    mark = Mark("s", f"content_library/{name}", {"a": 1}).on("id-1")
    line = mark.encode()
    assert Mark.decode(line) == mark
    assert Mark.owner_in(line) == replace(mark, applied=None)
    assert Mark.address_in(f"text\n{line}") == mark.address
    assert Mark("my site", "a/b").encode() == "bfinfra:1 site=my%20site address=a/b"
    assert Mark.site_in("bfinfra:1 site=my%20site address=a/b") == "my site"


def test_a_mark_of_a_plain_name_is_written_as_ever() -> None:
    assert Mark("s", "content_library/lib-1_ä").encode() == "bfinfra:1 site=s address=content_library/lib-1_ä"

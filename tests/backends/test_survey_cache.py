"""What a run has read: who shares a read, and when nothing old is handed out."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from bfinfra.backends.survey_cache import KnownObjects, SurveyCache
from bfinfra.model.reading import Reading

MARKS: Reading[int] = Reading("VirtualMachine", ("name", "mark"))
ALL: Reading[object] = Reading("VirtualMachine")


class Server:
    """Answers each question with the number of those before."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = threading.Event()
        self.go.set()

    def __call__(self) -> int:
        self.go.wait(60)
        self.asked += 1
        return self.asked - 1


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def cache() -> SurveyCache:
    return SurveyCache()


def test_kinds_that_prefetch_the_same_share_one_read_and_each_gets_it_once(cache, server):
    server.go.clear()
    cache.prefetch(MARKS, "one", server)
    cache.prefetch(Reading("VirtualMachine", ("name", "mark")), "other", server)
    server.go.set()
    assert (cache.read(MARKS, "one", server), cache.read(MARKS, "other", server)) == (0, 0)
    assert (cache.read(MARKS, "one", server), server.asked) == (1, 2)


def test_a_kind_that_prefetches_once_the_read_is_done_shares_it_all_the_same(cache, server):
    """Kinds are imported one after the other, and a server may be faster."""
    cache.prefetch(MARKS, "one", server)
    assert cache.read(MARKS, "one", server) == 0
    cache.prefetch(MARKS, "other", server)
    assert (cache.read(MARKS, "other", server), server.asked) == (0, 1)


def test_a_kind_that_prefetches_again_gets_nothing_that_it_had(cache, server):
    cache.prefetch(MARKS, "one", server)
    cache.prefetch(MARKS, "other", server)
    assert cache.read(MARKS, "one", server) == 0
    cache.prefetch(MARKS, "one", server)
    assert (cache.read(MARKS, "one", server), cache.read(MARKS, "other", server)) == (1, 0)


def test_other_paths_of_the_same_type_are_another_read(cache, server):
    cache.prefetch(MARKS, "one", server)
    cache.read(MARKS, "one", server)
    assert cache.read(Reading("VirtualMachine", ("name",)), "one", server) == 1


def test_what_nobody_read_in_its_survey_is_asked_for_anew(cache, server):
    cache.prefetch(MARKS, "one", server)
    cache.end_survey()
    assert cache.read(MARKS, "one", lambda: 7) == 7


def test_who_prefetches_after_a_survey_joins_none_of_it(cache, server):
    cache.prefetch(MARKS, "one", server)
    cache.read(MARKS, "one", server)
    cache.end_survey()
    cache.prefetch(MARKS, "other", server)
    assert cache.read(MARKS, "other", server) == 1


def test_an_error_reaches_everyone_who_shares_the_read_and_the_next_look_asks_again(cache, server):
    def fail() -> int:
        raise ConnectionError("gone")

    cache.prefetch(MARKS, "one", fail)
    cache.prefetch(MARKS, "other", fail)
    for reader in ("one", "other"):
        with pytest.raises(ConnectionError):
            cache.read(MARKS, reader, server)
        assert cache.read(MARKS, reader, lambda: 7) == 7


@pytest.mark.parametrize("early", [False, True])
def test_no_answer_stays_once_it_is_used(cache, early):
    class Answer:
        """All machines of a large site."""

    if early:
        cache.prefetch(ALL, "one", Answer)
    kept = weakref.ref(cache.read(ALL, "one", Answer))
    cache.end_survey()
    gc.collect()
    assert kept() is None


def test_each_kind_has_objects_of_its_own(cache):
    cache.objects("one").saw("a", ["vm-1"])
    assert cache.objects("one").of(["a"]) == {"vm-1"}
    assert cache.objects("other").of(["a"]) is None


def test_objects_must_be_looked_for_unless_all_are_known():
    known: KnownObjects[str, None] = KnownObjects()
    known.saw("a", ["vm-1", "vm-2"])
    known.saw("b", [])
    assert known.of(["a", "b"]) == {"vm-1", "vm-2"}
    assert known.of(["a", "c"]) is None
    known.forget("b")
    assert known.of(["a", "b"]) is None


def test_what_is_made_and_deleted_is_known_without_a_look():
    known: KnownObjects[str, None] = KnownObjects()
    known.saw("a", ["vm-1", "vm-2"])
    known.ended("a", "vm-1")
    assert (known.of(["a"]), known.gone) == ({"vm-2"}, {"vm-1"})
    known.made("a", "vm-3")
    assert (known.of(["a"]), known.own) == ({"vm-3"}, {"vm-3"})


def test_a_version_is_the_one_last_seen():
    known: KnownObjects[str, None] = KnownObjects()
    assert known.version("a", "x") == {}
    known.saw("a", {"x": {"uid": "u"}})
    assert known.version("a", "x") == {"uid": "u"}
    known.saw("a", {})
    assert known.version("a", "x") == {}


@pytest.mark.parametrize("answer", [{"metadata": {}}, None])
def test_what_a_write_answered_is_handed_out_once(answer):
    known: KnownObjects[str, dict[str, object] | None] = KnownObjects()
    known.wrote("x", answer)
    assert known.answer("x") == (answer,)
    assert known.answer("x") == ()


def test_a_question_is_asked_once_in_a_survey_and_each_time_after_it(cache, server):
    assert (cache.shared("secrets", server), cache.shared("secrets", server)) == (0, 0)
    assert cache.shared("jobs", server) == 1
    cache.end_survey()
    assert (cache.shared("secrets", server), cache.shared("secrets", server)) == (2, 3)


def test_who_comes_after_a_question_that_failed_asks_again(cache, server):
    def fails() -> int:
        raise OSError

    with pytest.raises(OSError):
        cache.shared("secrets", fails)
    assert cache.shared("secrets", server) == 0

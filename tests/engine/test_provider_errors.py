"""A kind that trips over a server's answer fails for its resource alone; what this machine lacks is not blamed on a server."""

from __future__ import annotations

import errno

import pytest

from bfinfra.engine.provider_errors import provider_errors
from bfinfra.model.errors import BfinfraError, Malformed, Problem


def raised(error, what="box/a"):
    with pytest.raises(BaseException) as found, provider_errors(what):
        raise error
    return found.value


def test_an_answer_that_no_kind_foresaw_is_malformed_and_names_the_resource_and_the_cause():
    found = raised(KeyError("size"))
    assert type(found) is Malformed
    [problem] = found.problems
    assert problem.what == "bfinfra can't read the server's answer about box/a"
    assert problem.why == "KeyError: 'size'"
    assert "BFINFRA_TRACEBACK=1" in problem.next
    assert isinstance(found.__cause__, KeyError)


def test_a_long_cause_is_cut():
    assert len(raised(ValueError("x" * 1000)).problems[0].why) == 300


def test_whoever_wants_to_see_where_gets_the_exception_itself(monkeypatch):
    monkeypatch.setenv("BFINFRA_TRACEBACK", "1")
    assert type(raised(KeyError("size"))) is KeyError
    monkeypatch.setenv("BFINFRA_TRACEBACK", "0")
    assert type(raised(KeyError("size"))) is Malformed


def test_an_error_of_bfinfra_stays_as_it_is():
    error = BfinfraError(Problem("it is broken"))
    assert raised(error) is error


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/site/key"),
            Problem("Permission denied", "/site/key"),
        ),
        (PermissionError(errno.EACCES, "Permission denied"), Problem("Permission denied", "")),
        (OSError(), Problem("OSError", "")),
    ],
)
def test_a_file_that_this_machine_refuses_is_named_and_no_server_blamed(error, problem):
    found = raised(error)
    assert type(found) is BfinfraError
    assert found.problems == (problem,)


def test_a_current_folder_that_is_gone_is_not_the_resources_fault():
    error = FileNotFoundError(errno.ENOENT, "No such file or directory")
    assert raised(error) is error
    assert type(raised(FileNotFoundError(errno.ENOENT, "No such file", "/a"))) is BfinfraError


def test_a_lack_of_memory_says_on_what():
    [problem] = raised(MemoryError()).problems
    assert problem.what == "there is not enough memory to work on box/a"
    assert "this machine" in problem.why
    assert problem.next == "run it where there is more memory"

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import TypeAdapter, ValidationError

import bfinfra.model.secret as secret_module
from bfinfra.model.errors import SecretMissing
from bfinfra.model.secret import Secret, digest, matches
from bfinfra.model.sources import Sources


def secret(value, **sources):
    return TypeAdapter(Secret).validate_python(value, context={"sources": Sources(**sources)})


def test_each_way_leads_to_the_value(tmp_path):
    (tmp_path / "p").write_text("from a file\n")
    assert secret({"env": "P"}, env={"P": "from env"}).reveal() == "from env"
    assert secret({"file": "p"}, base=tmp_path).reveal() == "from a file"
    assert secret({"command": ["printf", "from a program"]}, base=tmp_path).reveal() == "from a program"


def test_a_secret_prints_as_its_reference():
    made = secret({"env": "P"}, env={"P": "hunter2"})
    assert "hunter2" not in f"{made} {made!r} {made.reference()}"


@pytest.mark.parametrize(
    "value",
    [
        "hunter2",
        {},
        {"env": "A", "file": "b"},
        {"vault": "x"},
        {"env": ""},
        {"command": "ls"},
        {"keyring": "x"},
    ],
)
def test_anything_but_one_reference_is_refused_without_repeating_it_by_name(value):
    with pytest.raises(ValidationError) as caught:
        secret(value)
    assert "hunter2" not in caught.value.errors()[0]["msg"]


def test_what_is_missing_is_named_and_how_to_mend_it():
    missing = secret({"env": "NOT_SET"}, env={})
    assert missing.missing() == "the environment variable NOT_SET is not set"
    with pytest.raises(SecretMissing, match="NOT_SET is not set; export NOT_SET"):
        missing.reveal()


def test_a_failing_command_shows_neither_output_nor_arguments(tmp_path):
    with pytest.raises(SecretMissing) as caught:
        secret({"command": ["sh", "-c", "echo hunter2; exit 3"]}, base=tmp_path).reveal()
    assert "ended with 3" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_digest_knows_its_value_and_no_other():
    stored = digest("hunter2", pepper="salt of the site")
    assert matches("hunter2", stored, "salt of the site")
    assert not matches("hunter3", stored, "salt of the site")
    assert not matches("hunter2", stored)
    assert not matches("hunter2", "nonsense")


def test_a_run_digests_a_value_once_and_the_next_run_with_another_salt(monkeypatch):
    computed = []
    monkeypatch.setattr(
        secret_module.hashlib, "scrypt", lambda *words, **named: computed.append(words) or b"digest"
    )
    secret_module._salt.cache_clear()
    first = digest("a value of this test alone")
    assert first == digest("a value of this test alone")
    assert len(computed) == 1
    secret_module._salt.cache_clear()  # as a new process
    assert digest("a value of this test alone") != first
    secret_module._scrypt.cache_clear()


def test_two_references_to_the_same_place_are_equal():
    assert secret({"env": "P"}, env={"P": "1"}) == secret({"env": "P"}, env={"P": "2"})


def test_what_begins_at_once_shares_one_digest() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(digest, ["one-and-the-same"] * 8))) == 1


def test_a_command_that_is_not_there_is_named_without_its_arguments(tmp_path):
    with pytest.raises(SecretMissing) as found:
        secret({"command": ["no-such-program", "hunter2"]}, base=tmp_path).reveal()
    (problem,) = found.value.problems
    assert problem.what == "the secret's command no-such-program did not run"
    assert (problem.why, problem.next) == ("there is no such program", "run it by hand to see why")


def test_a_variable_that_is_no_text_is_refused_with_its_name_and_without_its_value() -> None:
    reference = secret({"env": "P"}, env={"P": "p\udce4ssword"})  # Latin-1, as Python reads the environment
    assert reference.missing() == "the environment variable P is not UTF-8 text"
    with pytest.raises(SecretMissing) as found:
        reference.reveal()
    assert str(found.value) == (
        "the environment variable P is not UTF-8 text; export P=…, or change the reference"
    )
    assert secret({"env": "P"}, env={"P": "pässwörd \U0001f600"}).reveal() == "pässwörd \U0001f600"

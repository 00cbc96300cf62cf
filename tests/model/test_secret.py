from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

import bfinfra.model.secret as secret_module
from bfinfra.model.errors import SecretMissing
from bfinfra.model.secret import LiteralSecret, Secret, digest, matches, read_again
from bfinfra.model.sources import LARGEST, LocalFile, Sources


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


def fails(made):
    with pytest.raises(SecretMissing) as found:
        made.reveal()
    return str(found.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hunter2", "write a reference: {env: NAME}"),
        ({}, "expected exactly one of {env: NAME}"),
        ({"machine": "x"}, "expected exactly one of"),
        ({"env": "A", "file": "b"}, "expected exactly one of"),
        (["env"], "expected exactly one of"),
        ({"env": ""}, "env: expected text"),
        ({"file": 1}, "file: expected text"),
        ({"command": "ls"}, "command: expected a list, the program and its arguments"),
        ({"command": []}, "command: expected a list"),
        ({"command": ["ls", 1]}, "command: expected a list"),
        ({"keyring": "x"}, "keyring: expected service/user"),
    ],
)
def test_what_is_no_reference_is_refused_with_what_is_expected(value, message):
    with pytest.raises(ValidationError, match=re.escape(message)) as refused:
        secret(value)
    assert isinstance(refused.value.errors()[0]["ctx"]["error"], LiteralSecret) is (value == "hunter2")


REFERENCES = [{"env": "P"}, {"file": "p"}, {"command": ["pass", "show", "p"]}, {"keyring": "service/user"}]


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ({"env": "P"}, "{env: P}"),
        ({"file": "p"}, "{file: p}"),
        ({"command": ["pass", "show", "p"]}, "{command: ['pass', 'show', 'p']}"),
        ({"keyring": "service/user"}, "{keyring: service/user}"),
    ],
)
def test_a_reference_is_written_as_it_was_read(reference, text):
    made, adapter = secret(reference), TypeAdapter(Secret)
    assert (
        made.reference() == adapter.dump_python(made) == adapter.dump_python(made, mode="json") == reference
    )
    assert str(made) == text
    assert adapter.validate_python(made) is made
    assert not made.foreign


def test_an_editor_underlines_what_is_no_reference():
    fits = jsonschema.Draft202012Validator(TypeAdapter(Secret).json_schema()).is_valid
    assert all(map(fits, (*REFERENCES, {"command": ["pass"]})))
    for wrong in ("P", {}, {"env": ""}, {"env": 1}, {"env": "P", "file": "p"}, {"env": "P", "more": 1}):
        assert not fits(wrong)
    for wrong in ("pass", [], ["pass", ""], ["pass", 1]):
        assert not fits({"command": wrong})
    assert TypeAdapter(Secret).json_schema()["description"]


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_site_of_somebody_else_runs_no_program(reference, tmp_path):
    if "env" in reference or "file" in reference:
        secret(reference, base=tmp_path, confined=True)
    else:
        (way,) = reference
        with pytest.raises(ValidationError, match=f"a Site can't have {{{way}: …}}: nothing that its author"):
            secret(reference, base=tmp_path, confined=True)
    with pytest.raises(ValidationError, match="leads out of the Site's own folder"):
        secret({"file": "/etc/passwd"}, base=tmp_path, confined=True)


def test_a_file_of_a_secret_is_known_before_it_is_read(tmp_path):
    made = secret({"file": "p"}, base=tmp_path)
    assert made.file == LocalFile("p", tmp_path / "p")
    assert made.file.path == tmp_path / "p"
    assert made.missing() == f"there is no file {tmp_path / 'p'}"
    assert fails(made) == f"the secret file {tmp_path / 'p'} can't be read; No such file or directory"
    (tmp_path / "p").write_text("x" * LARGEST + "y")
    assert made.missing() == ""
    assert "it is larger than" in fails(made)
    (tmp_path / "p").write_text("two\n\n")
    assert made.reveal() == "two\n", "one line end is the editor's"
    assert secret({"env": "p"}).file is None


def test_references_to_one_place_are_checked_once_and_those_to_two_twice(tmp_path):
    def leads(reference, **sources):
        return secret(reference, **{"base": tmp_path, **sources}).leads

    here = leads({"file": "p"})
    assert here == leads({"file": "p"})
    others = (
        leads({"file": "q"}),
        leads({"env": "p"}),
        leads({"file": "p"}, base=tmp_path / "other"),
        leads({"file": "p"}, stand_ins=tmp_path),
    )
    assert len({here, *others}) == 5


def test_what_a_machine_gave_is_a_secret_that_no_site_can_write():
    made = Secret.of_machine("the kubeconfig of m", "its text")
    assert (made.document(), made.foreign, made.file) == ("its text", True, None)
    assert "its text" not in f"{made} {made!r}"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder of programs, which PATH names; none was run yet."""
    read_again()
    monkeypatch.setattr(secret_module, "WITHHELD", {*secret_module.WITHHELD})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()

    def program(name: str, text: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    yield program
    read_again()


def test_a_keyring_is_asked_for_the_password_of_a_service(programs, tmp_path):
    programs("bin/keyring", "printf '%s|' \"$@\"")
    assert secret({"keyring": "vcenter/me/too"}, base=tmp_path).reveal() == "get|--|vcenter|me/too|"


def test_a_program_with_a_slash_is_beside_the_site_and_runs_there(programs, tmp_path):
    programs("give", 'pwd; echo "$1"')
    made = secret({"command": ["./give", "it"]}, base=tmp_path)
    assert made.reveal() == f"{tmp_path.resolve()}\nit"
    (tmp_path / "give").chmod(0o644)
    assert made.reveal() == f"{tmp_path.resolve()}\nit", "it runs once in a process"
    read_again()
    assert "./give did not run; Permission denied; run it by hand" in fails(made)
    (tmp_path / "give").unlink()
    assert "./give did not run; there is no such program; run it by hand" in fails(made)


def test_a_program_of_a_secret_gets_no_other_secret(programs, tmp_path, monkeypatch):
    for name in ("OF_THE_SITE", "GOVC_PASSWORD", "HARMLESS"):
        monkeypatch.setenv(name, name.lower())
    secret({"env": "OF_THE_SITE"})
    programs("bin/give", "echo ${OF_THE_SITE-none} ${GOVC_PASSWORD-none} ${HARMLESS-none}")
    assert secret({"command": ["give"]}, base=tmp_path).reveal() == "none none harmless"


@pytest.mark.parametrize(
    ("script", "value"), [("printf 'p\\n'", "p"), ("printf 'p\\r\\n'", "p"), ("printf 'p\\n\\n'", "p\n")]
)
def test_a_programs_last_line_end_is_no_part_of_the_secret(programs, tmp_path, script, value):
    programs("bin/give", script)
    assert secret({"command": ["give"]}, base=tmp_path).reveal() == value


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("printf '\\344'", "did not run; it prints no UTF-8 text; run it by hand to see why"),
        (
            "head -c 1100000 /dev/zero",
            "did not run; it answers more than 1024 KiB; run it by hand to see why",
        ),
        ("exit 3", "ended with 3; run it by hand to see why"),
    ],
)
def test_a_program_that_gives_no_secret_is_named_with_why(programs, tmp_path, script, why):
    programs("bin/give", script)
    assert fails(secret({"command": ["give"]}, base=tmp_path)) == f"the secret's command give {why}"


def test_the_digests_of_earlier_releases_still_match():
    stored = "scrypt$MDEyMzQ1Njc4OWFiY2RlZg==$nClbqECqGwiRzjeZOmjNZgyKppaF5SWsHptrRIb22J8="
    assert digest("hunter2", b"0123456789abcdef", "pepper") == stored
    assert matches("hunter2", stored, "pepper")
    assert not matches("hunter2", stored.replace("scrypt", "bcrypt"), "pepper")
    assert digest("hunter2", b"0" * 16) == digest("hunter2", b"0" * 16, "")
    assert matches("hunter2", digest("hunter2", b"0" * 16, ""))


def test_no_two_values_and_no_two_sites_share_a_salt():
    salts = [digest(*each).split("$")[1] for each in (("one",), ("two",), ("one", None, "pepper"))]
    assert len(set(salts)) == 3


@pytest.mark.parametrize(
    "stored",
    ["", "scrypt$é$x", "scrypt$AAAA$é", "scrypt$AAAA$\ud800", "scrypt$A$x", "scrypt$AAAA", "a$b$c$d"],
)
def test_a_spoiled_digest_is_one_of_no_value(stored):
    assert not matches("hunter2", stored)

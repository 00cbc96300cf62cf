"""A Dockerfile has the instructions of its kind and no other, whatever a site may say. tests/peers/test_formats.py
holds it to buildah.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from formats.texts import TEXTS, tried
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from bfinfra.formats import Unwritable
from bfinfra.formats.dockerfile import word
from bfinfra.kinds.image.client_image.dockerfile import dockerfile
from bfinfra.kinds.image.client_image.spec import Spec

PACKAGE = "bitfusion-client-ubuntu2004_3.0.0-11_amd64.deb"
PARTS = st.sampled_from(
    ["a", "root", "/home/x", "/", ".", "-", "_", "0", "ubuntu:20.04", "@sha256:" + "0" * 64, "~"]
)
LIKELY = st.lists(PARTS, min_size=1, max_size=3).map("".join) | TEXTS


def spec(**fields: Any) -> Spec:
    whole = {
        "image": "r.test/a:1",
        "base": "ubuntu:20.04",
        "package": PACKAGE,
        "context": "out",
        "users": {"root": None},
    }
    return Spec.model_validate(whole | fields)


def instructions(text: str) -> list[tuple[str, str]]:
    """By Dockerfile's reference: comments are lines that begin with #, a backslash at an end goes on."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    return [(found[0], found[2]) for line in joined.split("\n") if (found := line.partition(" "))]


PLAIN = [name for name, _ in instructions(dockerfile(spec()))]


@tried
@given(LIKELY, LIKELY, LIKELY, LIKELY)
def test_a_site_adds_no_instruction_and_no_command(base: str, user: str, home: str, package: str) -> None:
    fields = {"base": base, "users": {user: home}, "run_as": user, "package": f"x/{package}.deb"}
    for name, value in fields.items():  # each alone too, as most are refused together
        try:
            made = spec(**{name: value}, **({"run_as": "a"} if name != "run_as" else {}))
        except (ValidationError, ValueError):
            continue
        found = instructions(dockerfile(made))
        more = ["RUN"] if set(made.users) - {"root"} else []
        more += ["USER"] if made.run_as != "root" else []
        assert [each for each, _ in found] == [*PLAIN, *more]
        assert not [body for _, body in found if re.search(r"[`'\"<>|]|\$(?!user\b)", body)]


@tried
@given(TEXTS)
def test_a_word_has_no_meaning_or_is_refused(text: str) -> None:
    try:
        assert word(text) == text
    except Unwritable:
        assume(False)
    assert not set(text) & set(" \t\r\n\\\"'`$#<>|&;(){}[]!?,%^")
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize(
    "text", ["a\nRUN id", "$HOME", "a b", "<<EOF", "a\\", "", "`id`", "a;id", "a\u2028b"]
)
def test_a_meaning_is_refused(text: str) -> None:
    with pytest.raises(Unwritable):
        word(text)

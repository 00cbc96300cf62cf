"""A text in YAML is found again by every reader, and nothing else is."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from formats.texts import MEANINGS, TEXTS, WHOLE, tried
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from bfinfra.formats.yaml import comment, dumped, dumped_all, holds, quoted, scalar
from bfinfra.model import foreign
from bfinfra.model.yaml import compose


def by_site(text: str) -> Any:
    """bfinfra's own reader, to which every scalar is text."""
    root, problems = compose(Path("site.yaml"), text)
    assert not problems
    return None if root is None else root.plain()


def by_ruamel(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(io.StringIO(text))


READERS: tuple[Callable[[str], Any], ...] = (
    yaml.safe_load,
    lambda text: yaml.load(text, yaml.CSafeLoader),  # the safe one, by libyaml
    by_ruamel,
    lambda text: foreign.documents(text)[0],
)
"""PyYAML's two (YAML 1.1), ruamel.yaml's (1.2), and bfinfra's of what others wrote."""


def visible(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@tried
@given(st.lists(TEXTS, max_size=4), st.booleans())
@example(["a\x85b: 1", "? a", "1e3", "<<"], True)
def test_values_are_the_same_to_every_reader(texts: list[str], flow: bool) -> None:
    value = {"all": texts, "each": {text: {"in": text} for text in texts}}
    written = dumped(value, default_flow_style=flow)
    assert visible(written)
    assert [read(written) for read in READERS] == [value] * len(READERS)


@tried
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_scalar_fits_behind_a_key(texts: list[str]) -> None:
    written = "".join(
        f"k{number}: {scalar(text)}\nq{number}: {quoted(text)}\n" for number, text in enumerate(texts)
    )
    wanted = {f"{key}{number}": text for number, text in enumerate(texts) for key in "kq"}
    assert visible(written)
    assert [read(written) for read in READERS] == [wanted] * len(READERS)
    if "\0" in "".join(texts):  # what no program takes is refused by name, and is nothing else
        assert {each.what for each in compose(Path("site.yaml"), written)[1]} == {"a value has a NUL in it"}
    else:
        assert by_site(written) == wanted


@tried
@given(st.lists(WHOLE, min_size=1, max_size=4))
@example(["a\u2028linux_host:\n h: 1"])
def test_a_comment_holds_no_key(texts: list[str]) -> None:
    written = "".join(
        f"{comment(text)}\nk{number}: v  {comment(text)}\n" for number, text in enumerate(texts)
    )
    wanted = {f"k{number}": "v" for number in range(len(texts))}
    assert visible(written)
    assert [*(read(written) for read in READERS), by_site(written)] == [wanted] * (len(READERS) + 1)


@tried
@given(st.lists(st.fixed_dictionaries({"name": TEXTS}), max_size=3))
def test_documents_stay_apart(values: list[dict[str, str]]) -> None:
    assert list(yaml.safe_load_all(dumped_all(values))) == values


def test_text_that_needs_no_quotes_has_none() -> None:
    assert dumped({"network": "VM Network", "é": "日本 1.2.3"}) == "network: VM Network\né: 日本 1.2.3\n"


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    twice = ["a"]
    assert dumped({"one": twice, "two": twice}) == "one:\n- a\ntwo:\n- a\n"


@pytest.mark.parametrize("text", ["\ud800", "a\udcff"])
def test_half_of_a_character_is_shown(text: str) -> None:
    assert not holds({"a": [{"b": text}]})
    (read,) = yaml.safe_load(dumped([text]))
    assert read == text.encode("unicode_escape", "surrogatepass").decode()


def test_what_yaml_can_hold_is_told_from_what_it_cannot() -> None:
    assert holds({"a": [1, None, *MEANINGS]})
    assert not holds({"\ud800": 1})

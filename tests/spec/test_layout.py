"""The canonical layout: what is written reads the same, its comments stay, and it is laid out once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from bfinfra.model.errors import SiteError
from bfinfra.model.yaml import Unreadable, compose
from bfinfra.spec.layout import formatted
from bfinfra.spec.load import load
from bfinfra.spec.site_text import commented

SPECS = Path(__file__).parents[2] / "specs"
SITES = [*SPECS.glob("*.yaml"), *SPECS.glob("kinds/*.yaml"), *SPECS.glob("peers/*.yaml")]
UNTIDY = """\
# yaml-language-server: $schema=site.schema.json
# What this is.

gpu_host:   # hosts
    esx1:   {cluster: 'c1',   passthrough: [ {vendor: 0x10de, device: 0x1eb8} ]}   # T4


    esx2:
        cluster: "c1"
        # both cards
        passthrough:
            - vendor: 0x10de   # NVIDIA
              device: 0x1eb8
    # the last one is not here

host_option:
  mtu: {hosts: [a-very-long-name-of-a-host-1.example.com, a-very-long-name-of-a-host-2.example.com], # both
    key: 'say "hi"',
    # why
    value: 'it''s'}  # end
vcenter: {server: vc}
site: poc # its name
"""
TIDY = """\
# yaml-language-server: $schema=site.schema.json
# What this is.

site: poc  # its name
vcenter: {server: vc}

gpu_host:  # hosts
  esx1: {cluster: "c1", passthrough: [{vendor: 0x10de, device: 0x1eb8}]}  # T4

  esx2:
    cluster: "c1"
    # both cards
    passthrough:
    - vendor: 0x10de  # NVIDIA
      device: 0x1eb8
  # the last one is not here

host_option:
  mtu:  # end
    hosts: [a-very-long-name-of-a-host-1.example.com, a-very-long-name-of-a-host-2.example.com]  # both
    key: 'say "hi"'
    # why
    value: "it's"
"""


def laid_out(text: str) -> str:
    return formatted(Path("site.yaml"), text)


def test_a_site_is_laid_out_in_the_canonical_way() -> None:
    assert laid_out(UNTIDY) == TIDY


@pytest.mark.parametrize("site", SITES, ids=lambda each: str(each.relative_to(SPECS)))
def test_a_site_means_the_same_and_is_laid_out_once(site: Path, tmp_path: Path) -> None:
    text = laid_out(site.read_text())
    assert laid_out(text) == text
    for name, each in (("before", site.read_text()), ("after", text)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "site.yaml").write_text(each)
    before, after = (load([tmp_path / name / "site.yaml"], env={}) for name in ("before", "after"))
    assert repr(after.resources).replace("/after/", "/before/") == repr(before.resources)
    assert (after.name, after.drift) == (before.name, before.drift)


def test_what_init_writes_is_in_the_canonical_layout() -> None:
    assert laid_out(commented("poc")) == commented("poc")


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("", ""),
        ("# only this\n\n\n#  and this", "# only this\n\n#  and this\n"),
        ("a: 1\r\nb: 2\r\n", "a: 1\nb: 2\n"),
        ("\ufeffa: 1", "a: 1\n"),
        ("---\na: 1\n...\n# end\n", "---\na: 1\n# end\n"),
        ("{site: x, k: {}}", "site: x\nk: {}\n"),
        ("a: |\n      one\n        two\n\n\n", "a: |\n  one\n    two\n"),
        ("a:\n    - |2\n       one\n", "a:\n- |2\n   one\n"),
        ("a: |+\n  one\n\n\nb: 1\n", "a: |+\n  one\n\n\nb: 1\n"),
        ("a: |  # note\n   one", "a: |-  # note\n  one\n"),
        ("a: &x\n   b: 1\nc: {<<: *x}\nsite: d\n", "a: &x\n  b: 1\n\nc: {<<: *x}\nsite: d\n"),
        ("a: 'b\n\n      c'\n", "a: 'b\n\n  c'\n"),
        ("a:\nb: [~, ]\n", "a:\nb: [~]\n"),
    ],
)
def test_rare_forms_keep_what_they_say(text: str, then: str) -> None:
    assert laid_out(text) == then
    assert laid_out(then) == then


@pytest.mark.parametrize("text", ["a: [1", "a: 1\n---\nb: 2\n", "a: 1\na: 2\n", "a: !x 1\n"])
def test_what_is_no_site_file_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SiteError) as caught:
        laid_out(text)
    assert str(caught.value).startswith("site.yaml:")


WORDS = ("a", "x: y", "- z", "it's", 'say "hi"', "1.20", "no", "", "# not", "line\nbreak\n", "two\n\n  lines", "end\n\n", "{}", "*a", "ünï", "very " * 40, "\nlead", None, True, 3)  # fmt: skip
KEYS = ("site", "vcenter", "values", "gpu_host", "k", "two words")


def _value(some: random.Random, depth: int) -> object:
    if depth == 0 or some.random() < 0.5:
        return some.choice(WORDS)
    if some.random() < 0.5:
        return [_value(some, depth - 1) for _ in range(some.randint(0, 3))]
    return {some.choice(KEYS): _value(some, depth - 1) for _ in range(some.randint(0, 3))}


def _document(some: random.Random) -> str:
    """YAML as anybody may write it, with comments and blank lines anywhere."""
    text = yaml.dump(
        {some.choice(KEYS): _value(some, 4) for _ in range(3)},
        sort_keys=False,
        default_flow_style=some.choice([None, True, False]),
        default_style=some.choice([None, None, "'", '"', "|"]),
        indent=some.choice([2, 4]),
        width=some.choice([20, 80, 400]),
        allow_unicode=True,
    )
    lines = []
    for number, line in enumerate(text.split("\n")):
        lines += [" " * some.choice([0, 2, 4]) + f"# own {number}"] if some.random() < 0.15 else []
        lines += [""] if some.random() < 0.1 else []
        lines.append(line + (some.choice([f"  # c{number}", f" #d{number}"]) if some.random() < 0.2 else ""))
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_any_document_is_laid_out_once_and_never_refused(seed: int) -> None:
    some, tried = random.Random(seed), 0
    for text in (_document(some) for _ in range(25)):
        try:
            if compose(Path("site.yaml"), text)[1]:
                continue
        except Unreadable:
            continue
        tried += 1
        once = laid_out(text)  # which compares what both say, and their comments
        assert laid_out(once) == once
    assert tried > 10

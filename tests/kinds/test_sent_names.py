"""The name under which a file of this machine goes to another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bad_input import corpus

from bfinfra.backends.ansible.inert import inert
from bfinfra.kinds.sent_files import PLAIN, sent, sent_name


@pytest.mark.parametrize(
    "name", ["bitfusion-client_3.0.0-11~x+1_amd64.deb", "a%3a2.0.rpm", "package (1).deb", "install.sh", "9"]
)
def test_a_plain_name_stays(name: str) -> None:
    assert sent_name(f"/home/{{x}}/{name}") == name
    assert sent(f"/home/x/{name}")["dest"] == f"/var/cache/bfinfra/{name}"


@pytest.mark.parametrize(
    "name", ["-o.deb", "{{ x }}.deb", "a,b.deb", "$HOME.deb", "a\nmark=x.deb", "é.deb", ".deb", "x" * 300]
)
def test_another_is_given_one_by_which_it_is_known_again(name: str) -> None:
    made = sent_name(f"/srv/{name}")
    assert re.fullmatch(r"file-[0-9a-f]{12}(\.deb)?", made)
    assert made == sent_name(f"/elsewhere/{name}") != sent_name(f"/srv/{name}2.deb")


@pytest.mark.parametrize("name", corpus.values(Path("/c")).values(), ids=corpus.values(Path("/c")))
def test_no_name_is_a_list_a_line_an_option_or_a_path(name: str) -> None:
    made = sent_name(f"/srv/{name}")
    assert PLAIN.fullmatch(made)
    assert "," not in made
    inert({"dest": f"/var/cache/bfinfra/{made}", "files": [f"/x/{made}"]}, "", str)

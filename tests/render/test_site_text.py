"""`bfinfra render`: the merged site as YAML, and where each value comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from formats.texts import TEXTS, tried
from hypothesis import given
from hypothesis import strategies as st

from bfinfra.cli.main import main
from bfinfra.formats.yaml import dumped
from bfinfra.model.yaml import compose, unfit_key
from bfinfra.render import site

SITE = """\
site: {value: name}
values:
  name: {description: dev or prod}
  cpus: {type: integer, default: 1}
x-sizes: &small {memory: 4GiB}
vcenter:
  server: vc.dev.test
  username: a@b
  password: {env: PW}
vm_class:
  big: {cpus: {value: cpus}, memory: 16GiB, description: "1.20"}
  gone: {<<: *small, cpus: 2}
  same: {<<: *small, cpus: 2}
"""
PROD = """\
vcenter: {server: vc.prod.test}
vm_class:
  gone: null
  big:
    description: |
      two
      lines
"""
MERGED = """\
site: prod
vcenter:
  server: vc.prod.test
  username: a@b
  password:
    env: PW
vm_class:
  big:
    cpus: 4
    memory: 16GiB
    description: |
      two
      lines
  same:
    cpus: 2
    memory: 4GiB
"""
ORIGINS = """\
site: prod  # --set name
vcenter:
  server: vc.prod.test  # prod.yaml:1
  username: a@b  # site.yaml:8
  password:
    env: PW  # site.yaml:9
vm_class:
  big:
    cpus: 4  # values.yaml:1
    memory: 16GiB  # site.yaml:11
    description: |  # prod.yaml:5
      two
      lines
  same:
    cpus: 2  # site.yaml:13
    memory: 4GiB  # site.yaml:5
"""
PRODUCTION = ("--overlay", "prod.yaml", "--values", "values.yaml", "--set", "name=prod")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"site": SITE, "prod": PROD, "values": "cpus: 4\n"}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_site_is_printed_with_everything_merged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "site.yaml", *PRODUCTION]) == 0
    assert capsys.readouterr().out == MERGED


def test_verbosely_each_value_is_followed_by_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-v", "site.yaml", *PRODUCTION]) == 0
    assert capsys.readouterr().out == ORIGINS


def test_what_is_printed_is_the_same_site(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["render", "-v", "site.yaml", *PRODUCTION])
    (folder / "again.yaml").write_text(capsys.readouterr().out)
    assert main(["render", "again.yaml"]) == 0
    assert capsys.readouterr().out == MERGED


def test_quoted_text_stays_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "site.yaml", "--set", "name=1.10"]) == 0
    found = capsys.readouterr().out
    assert "site: '1.10'\n" in found
    assert "description: '1.20'\n" in found


def test_json_has_origins_beside_the_site(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--output", "json", "site.yaml", *PRODUCTION]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["type"], found["site"], found["merged"]["vcenter"]["server"]) == (
        "site",
        "prod",
        "vc.prod.test",
    )
    assert {"path": ["vm_class", "big", "cpus"], "origin": "values.yaml:1"} in found["origins"]


def test_a_site_that_is_wrong_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "site.yaml"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "the value name is not given" in output.err


WRITTEN = TEXTS.filter(lambda text: "\0" not in text)
"""What a site can say: a NUL is refused by name."""


@tried
@given(
    TEXTS.filter(bool),
    WRITTEN,
    st.dictionaries(TEXTS.filter(lambda name: name and not unfit_key(name)), WRITTEN),
)
def test_nothing_is_added_to_a_rendered_site(file: str, name: str, values: dict[str, str]) -> None:
    """Whatever its files are called, and its values say."""
    root, problems = compose(Path(file), dumped({"site": name, "kind": values}))
    assert root is not None
    assert not problems
    for origins in (False, True):
        again, problems = compose(Path("x"), site.text(root, origins=origins))
        assert not problems
        assert again is not None
        assert again.plain() == {"site": name, "kind": values}

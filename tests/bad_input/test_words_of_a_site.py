"""Every text of a site that may become a word of a program on a Linux machine: whatever stands there, `validate`
refuses it by name and place, or it is one whole word, and no option.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_input import corpus
from pydantic import ValidationError

import bfinfra
from bfinfra import kinds
from bfinfra.kinds.machine.base import LinuxSoftware
from bfinfra.kinds.machine.linux_host.checks import connect
from bfinfra.model.errors import Place, SiteError
from bfinfra.model.sources import Sources

EXAMPLES = Path(__file__).parents[2] / "specs/kinds"
SOFTWARE = [name for name in kinds.names("machine") if issubclass(kinds.kind(name), LinuxSoftware)]
NOT_IN_YAML = ("lone surrogate", "byte that is no UTF-8")  # no YAML file can hold them
FILLED = {
    "linux_host": {"sudo_password": {"env": "P"}, "user": "ubuntu"},
    "bitfusion_client": {"users": [{"name": "ubuntu", "home": "/home/ubuntu"}], "client_files": None},
}
PAIR, QUOTES = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"), '""'
Path_ = tuple[str | int, ...]


def texts(schema: dict[str, Any], at: dict[str, Any], known: dict[str, Any]) -> Iterator[Path_]:
    """Where a resource takes text: the paths of its fields, its lists' first items, its mappings' values."""
    for ref in (at.get("$ref"), *(each.get("$ref") for each in at.get("allOf", ()))):
        if ref:
            yield from texts(schema, known[ref.rpartition("/")[2]], known)
    for each in at.get("anyOf", ()):
        yield from texts(schema, each, known)
    kind = at.get("type")
    if kind == "string" or kind == ["string", "number", "boolean"]:
        yield ()
    if "items" in at:
        yield from ((0, *rest) for rest in texts(schema, at["items"], known))
    for name, inner in at.get("properties", {}).items():
        yield from ((name, *rest) for rest in texts(schema, inner, known))
    if isinstance(at.get("additionalProperties"), dict):
        yield from (("a", *rest) for rest in texts(schema, at["additionalProperties"], known))


def fields(kind: str) -> list[Path_]:
    made = kinds.kind(kind).Spec.model_json_schema()
    return sorted({*texts(made, made, made.get("$defs", {}))} - {()}, key=str)


def put(block: Any, path: Path_, value: str) -> Any:
    """The block with a value at a path."""
    if not path:
        return value
    first, *rest = path
    if isinstance(first, int):
        inner = block[0] if isinstance(block, list) and block else None
        return [put(inner, tuple(rest), value), *(block[1:] if isinstance(block, list) else ())]
    known = dict(block) if isinstance(block, dict) else {}
    return {**known, first: put(known.get(first), tuple(rest), value)}


@functools.cache
def example(kind: str) -> str:
    return json.dumps(yaml.safe_load((EXAMPLES / f"{kind}.yaml").read_text()))


def site(folder: Path, kind: str, blocks: dict[str, Any]) -> Path:
    """A file with these resources, and what the example of their kind has besides. JSON is YAML, but for pairs of
    surrogates.
    """
    text = json.dumps({**json.loads(example(kind)), kind: blocks}, indent=0)
    text = PAIR.sub(lambda found: f"\\U{ord(json.loads(found[0].join(QUOTES))):08x}", text)
    (folder / "site.yaml").write_text(text)
    return folder / "site.yaml"


def example_of(kind: str) -> dict[str, Any]:
    return {**next(iter(json.loads(example(kind))[kind].values())), **FILLED.get(kind, {})}


def problems(path: Path) -> tuple[Any, ...]:
    try:
        bfinfra.load(path)
    except SiteError as error:
        return error.problems
    return ()


def asked(kind: str, name: str, spec: Any) -> Iterator[tuple[str, ...]]:
    """The commands that machines run for a resource."""
    bound = kinds.kind(kind)
    for host in bound.askable(bound, spec) if kind in SOFTWARE else ():
        yield from map(tuple, bound.commands(bound, host, [spec]).values())
    addresses = {name: "10.0.0.1"} if kind != "linux_host" else {name: spec.address}
    for _, (address, port) in spec.ways(addresses):
        yield connect(address, port)


@pytest.mark.parametrize("kind", ["linux_host", *SOFTWARE])
def test_a_text_is_refused_where_it_is_written_or_is_one_word_and_no_option(kind, tmp_path):
    values = {
        name: value
        for name, value in corpus.values(tmp_path / "canary").items()
        if name not in (*NOT_IN_YAML, *corpus.LONG)
    }
    tried, accepted, sources = 0, 0, Sources(base=tmp_path)
    for path in fields(kind):
        blocks = {f"r{at}": put(example_of(kind), path, each) for at, each in enumerate(values.values())}
        file = site(tmp_path, kind, blocks)
        refused = {
            problem.what.partition(":")[0]
            for problem in problems(file)
            if isinstance(problem.where, Place) and problem.where.line > 1
        }
        for name, (title, value) in zip(blocks, values.items(), strict=True):
            tried += 1
            try:
                spec = kinds.kind(kind).Spec.model_validate(blocks[name], context={"sources": sources})
            except ValidationError:
                assert f"{kind}/{name}" in refused, (path, title)
                continue
            accepted += 1
            for command in asked(kind, name, spec):
                _check(command, value, (path, title, command))
    assert tried >= 50 * len(fields(kind)) > 0
    assert 0 < accepted < tried
    assert corpus.ran(tmp_path / "canary") == []


def _check(command: tuple[str, ...], value: str, about: object) -> None:
    """That the value is no part of a script, and no option."""
    for before, word in zip(("", *command), command, strict=False):
        if len(value) > 2 and value in word:
            assert before != "-c", about
            assert not word.startswith("-"), about
            assert word == value or value.strip("/") in word.split("/"), about


@pytest.mark.parametrize(
    ("kind", "field", "value", "says"),
    [
        ("linux_host", ("address",), "-oProxyCommand=touch x", "address"),
        ("linux_host", ("address",), "a b", "address"),
        ("linux_host", ("address",), "a\nb", "address"),
        ("linux_host", ("address",), "%h", "address"),
        ("linux_host", ("user",), "-l", "user"),
        ("linux_host", ("user",), "a$(touch x)", "user"),
        ("linux_host", ("user",), "#0", "user"),
        ("linux_host", ("python",), "/usr/bin/python3; touch x", "python"),
        ("linux_host", ("python",), "-c", "python"),
        ("linux_host", ("trust",), {"sha256": "SHA256:\n* ssh-rsa AAAA"}, "trust.sha256"),
        ("bitfusion_client", ("users", 0, "name"), "-u", "users.0.name"),
        ("bitfusion_client", ("users", 0, "home"), "home", "users.0.home"),
        ("bitfusion_client", ("users", 0, "home"), "/home/$(id)", "users.0.home"),
        ("nvidia_container_toolkit", ("program",), "-n", "program"),
        ("nvidia_container_toolkit", ("program",), "/bin/a b", "program"),
        ("kubeadm_cluster", ("modules",), ["-r"], "modules.0"),
        ("kubeadm_cluster", ("cri_socket",), "--x", "cri_socket"),
        ("kubeadm_cluster", ("endpoint",), "-h:6443", "endpoint"),
        ("kubeadm_cluster", ("ignore_preflight",), ["--a"], "ignore_preflight.0"),
        ("vgpu_license", ("server",), "a/b;c", "server"),
        ("loaded_image", ("image",), "--all", "image"),
        ("container_image", ("image",), "--push", "image"),
        ("container_image", ("arguments",), {"-a": "b"}, "arguments"),
        ("client_image", ("base",), "--squash", "base"),
    ],
)
def test_what_would_be_an_option_or_a_script_is_refused_at_its_field(kind, field, value, says, tmp_path):
    file = site(tmp_path, kind, {"r": put(example_of(kind), field, value)})
    (problem, *_) = [each for each in problems(file) if f"{kind}/r: {says}" in each.what]
    assert isinstance(problem.where, Place)
    assert file.read_text().splitlines()[problem.where.line - 1].strip()


def test_a_nul_is_refused_wherever_it_stands(tmp_path):
    file = tmp_path / "site.yaml"
    file.write_text('site: s\nbitfusion_token:\n  t:\n    source: {tar: "a\\0b"}\n')
    (value,) = problems(file)
    assert (value.what, value.where.line, value.where.column) == ("a value has a NUL in it", 4, 19)
    file.write_text('site: s\nbitfusion_token:\n  "a\\0b": {source: {tar: t.tar}}\n')
    (key,) = problems(file)
    assert (key.what, key.where.line) == ("a key contains an invisible character", 3)


@pytest.mark.parametrize("name", NOT_IN_YAML)
def test_half_a_pair_of_surrogates_is_no_yaml(name, tmp_path):
    value = corpus.values(tmp_path)[name]
    (tmp_path / "site.yaml").write_text(f"site: s\nx-a: {json.dumps(value)}\n")
    (problem,) = problems(tmp_path / "site.yaml")
    assert "not YAML" in problem.what
    assert problem.where.line == 2

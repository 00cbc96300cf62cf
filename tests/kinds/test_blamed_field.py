"""A check of several fields of a resource points at the field that it blames, by file, line and column."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import bfinfra
from bfinfra.model.errors import SiteError

NONE_IS_WRITTEN = {
    ("kinds/machine/linux_host/spec.py", "_lets_in"),
    ("kinds/cluster/network_path/spec.py", "_somewhere"),
    ("kinds/supervisor/vks_cluster/spec.py", "_check"),
    ("kinds/cluster/manifests/spec.py", "_one_source"),
    ("kinds/vcenter/storage_policy/spec.py", "_asks"),
    ("model/choice.py", "one_of"),
}
"""Checks that find that a field is missing: there is no place but the block's."""


@pytest.mark.parametrize(
    ("kind", "fields", "column", "expected"),
    [
        ("bitfusion_token", "{source: {tar: a, folder: b}}", 36, "source.folder: give either tar or folder"),
        ("flexdirect_host", "{hosts: [a, b, a], package: a.deb}", 25, "hosts.2: a is listed twice"),
        (
            "distributed_switch",
            "{uplinks: 1, hosts: {esx1.test: [vmnic0, vmnic1]}}",
            31,
            "hosts.esx1.test: 2 NICs are more than its uplinks, 1",
        ),
        ("workload", "{cluster: c, manifest: a.yaml, home: /root}", 47, "home: it goes with token_secret"),
        (
            "network_path",
            "{cluster: c, addresses: [10.0.0.1, 10.0], ports: [1], probe: {}}",
            45,
            "addresses.1: '10.0'",
        ),
        (
            "host_option",
            "{hosts: [a], key: K, value: 1, adapter: 2}",
            50,
            "adapter: give either value or adapter",
        ),
    ],
)
def test_a_check_of_several_fields_points_at_one(
    kind: str, fields: str, column: int, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(f"site: s\n{kind}:\n  thing: {fields}\n")
    with pytest.raises(SiteError) as caught:
        bfinfra.load(path)
    found = [each for each in caught.value.problems if each.what.startswith(f"{kind}/thing: {expected}")]
    assert [str(each.where).partition(":")[2][:4] for each in found] == [f"3:{column}"], caught.value


def test_no_check_of_several_fields_blames_the_whole_block():
    package = Path(bfinfra.__file__).parent
    found = set()
    for file in [*package.glob("kinds/**/*.py"), *package.glob("model/*.py")]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and (
                any("model_validator" in ast.unparse(each) for each in node.decorator_list)
                or node.name == "one_of"
            ):
                found |= {
                    (str(file.relative_to(package)), node.name)
                    for each in ast.walk(node)
                    if isinstance(each, ast.Raise)
                    and isinstance(each.exc, ast.Call)
                    and ast.unparse(each.exc.func) == "ValueError"
                }
    assert found == NONE_IS_WRITTEN

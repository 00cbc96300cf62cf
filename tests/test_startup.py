"""Start-up is a feature: reading a site imports no client library."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import grown
import pytest
from loading import loaded

from bfinfra.app.wiring import IN_CLUSTERS, SOURCES
from bfinfra.kinds import groups, kind, names, spec
from bfinfra.kinds.cluster_locator import CLUSTERS
from bfinfra.model.kind import Source
from bfinfra.model.refs import kinds_named
from bfinfra.sandbox import Running

SITE = Path(__file__).parents[1] / "specs" / "singapore-poc.yaml"
HEAVY = {"pyVmomi", "lightkube", "httpx2", "lxml", "cryptography", "rich", "tenacity"}


FORKING = """
import json, os, sys
import pydantic, bfinfra.kinds
for line in sys.stdin:
    if os.fork() == 0:
        exec(json.loads(line))
        print(json.dumps([*sys.modules]), flush=True)
        os._exit(0)
    if os.wait()[1]:
        print("null", flush=True)
"""


@pytest.fixture(scope="module")
def loaded_besides() -> Iterator[Callable[[str], set[str]]]:
    """What is imported after some code, in a fork of a process that has imported what all kinds share."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        asks, answers = parent.stdin, parent.stdout
        assert asks and answers

        def loaded_after(code: str) -> set[str]:
            asks.write(json.dumps(code) + "\n")
            asks.flush()
            found = json.loads(answers.readline())
            assert found is not None, f"{code}: it fails"
            return set(found)

        yield loaded_after
        asks.close()


@pytest.mark.thorough("gpu_host", "namespace")
@pytest.mark.parametrize("kind", names())
def test_a_kind_is_read_without_its_client_libraries(kind, loaded_besides):
    seen = loaded_besides(f"from bfinfra.kinds import kind; kind({kind!r})")
    assert any(name.split(".")[-1] == kind or f".{kind}." in name for name in seen)
    assert not HEAVY & seen


def test_the_version_is_printed_without_anything_heavy():
    assert not (HEAVY | {"pydantic", "yaml"}) & loaded("import bfinfra.cli.main")


def test_a_site_is_validated_without_clients_and_decisions():
    seen = loaded(f"from bfinfra.cli import main; assert main(['validate', {str(SITE)!r}]) == 0; print()")
    assert "bfinfra.kinds.vcenter.bitfusion_server.spec" in seen
    assert (
        not (HEAVY | {"bfinfra.kinds.vcenter.bitfusion_server.decide", "bfinfra.backends.transport"}) & seen
    )


@pytest.mark.parametrize("name", names())
def test_a_site_is_read_with_the_very_fields_that_its_kinds_decide_on(name):
    assert spec(name) is kind(name).Spec


def test_a_drift_of_servers_imports_nothing_of_what_lives_in_clusters(
    sandbox: Running, tmp_path: Path
) -> None:
    site = grown.servers(tmp_path, 1)
    seen = loaded(f"""
import bfinfra, pathlib
from bfinfra.sandbox import running
world = running(pathlib.Path({str(sandbox.state)!r}))
found = bfinfra.drift(bfinfra.load({str(site)!r}, sandbox=world), context=bfinfra.RunContext(sandbox=world))
assert found.found or found.problems
""")
    assert "bfinfra.kinds.vcenter.bitfusion_server.decide" in seen
    assert not {"lightkube", "cryptography", "rich"} & seen
    assert not {f"bfinfra.kinds.{groups()[name]}.{name}" for name in IN_CLUSTERS | SOURCES} & seen


def test_only_objects_of_clusters_are_read_where_only_a_cluster_exists() -> None:
    """A kind that were in the list and is elsewhere too would not be pruned; one that isn't costs each drift
    its import.
    """
    takes = {name: {str(hint) for hint in kind(name).__init__.__annotations__.values()} for name in names()}
    assert {
        name for name in names() if "Clusters" in takes[name] and kinds_named(kind(name).Spec) & {*CLUSTERS}
    } == IN_CLUSTERS
    assert {name for name in names() if issubclass(kind(name), Source)} == SOURCES

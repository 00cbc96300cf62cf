"""Start-up is a feature: reading a site imports no client library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bfinfra.kinds import kind, names, spec

SITE = Path(__file__).parents[1] / "specs" / "singapore-poc.yaml"
HEAVY = {"pyVmomi", "lightkube", "httpx2", "lxml", "cryptography", "rich", "tenacity"}


def loaded(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("kind", names())
def test_a_kind_is_read_without_its_client_libraries(kind):
    assert not HEAVY & loaded(f"from bfinfra.kinds import kind; kind({kind!r})")


def test_the_version_is_told_without_anything_heavy():
    assert not (HEAVY | {"pydantic", "yaml"}) & loaded("import bfinfra.cli.main")


def test_a_site_is_validated_without_clients_and_decisions():
    seen = loaded(f"from bfinfra.cli import main; assert main(['validate', {str(SITE)!r}]) == 0; print()")
    assert "bfinfra.kinds.bitfusion_server.spec" in seen
    assert not (HEAVY | {"bfinfra.kinds.bitfusion_server.decide", "bfinfra.backends.transport"}) & seen


@pytest.mark.parametrize("name", names())
def test_a_site_is_read_with_the_very_fields_that_its_kinds_decide_on(name):
    assert spec(name) is kind(name).Spec

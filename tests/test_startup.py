"""Start-up is a feature: reading a site imports no client library."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bfinfra.kinds import names

HEAVY = {"pyVmomi", "lightkube", "httpx2", "lxml", "cryptography", "rich", "tenacity"}


def loaded(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("kind", names())
def test_a_kind_is_read_without_its_client_libraries(kind):
    assert not HEAVY & loaded(f"from bfinfra.kinds import kind; kind({kind!r})")


def test_the_version_is_told_without_anything_heavy():
    assert not (HEAVY | {"pydantic", "yaml"}) & loaded("import bfinfra.cli.main")

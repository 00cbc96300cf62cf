"""What bfinfra and the sandbox say over REST, by the type metadata of three generations of vSphere's
own SDK.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recorded.conftest import Held
from recorded.sources import ROOT, fetched

SOURCE = "vmware-vcenter, type metadata"
JUDGED = {
    "8.0.3.0": ("tests/sandbox/rest/test_clients_sdk.py",),
    **dict.fromkeys(
        ("9.0.0.0", "9.1.1.0"),
        ("tests/sandbox/rest/test_clients_sdk.py", "tests/sandbox/rest/test_clients_sdk_9.py"),
    ),
}
"""What each generation knows of."""


@pytest.mark.thorough("9.1.1.0")
@pytest.mark.parametrize("version", JUDGED)
def test_every_body_and_answer_fits(version: str, held: Held, tmp_path: Path) -> None:
    """The life of each kind that speaks REST, as the default suite has it, in a process that finds this
    generation's types before its own.
    """
    (tmp_path / "com").symlink_to(
        fetched(f"wheel/vmware-vcenter-{version}") / "com"
    )  # not its vmware.vapi, which hides the runtime
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    where = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        "import com.vmware.vcenter.namespace_management_client as found; print(found.__file__)",
    ]
    assert subprocess.check_output(where, env=env, text=True).startswith(str(tmp_path)), (
        "another generation's types were found"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
        "-rfE",
        *JUDGED[version],
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (.*)$", done.stdout, re.MULTILINE)
    passed = sum(
        line.count(".") for line in re.findall(r"^([.FExs]+) +\[ *\d+%\]$", done.stdout, re.MULTILINE)
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    held(
        f"{SOURCE} {version}: lives of kinds",
        [f"{each}: {done.stdout[-3000:]}" for each in failed],
        passed + len(failed),
    )

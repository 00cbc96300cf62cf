"""Every command of the first page runs as it is typed: on a vcsim filled by govc, with an empty HOME. script/package installs the wheel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from docs.commands import VARIES, blocks, commands, differs
from peers.conftest import Vcsim
from peers.found import USER

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-hour.md"
SHA = re.compile(r"\b(?:[0-9A-F]{2}:){31}[0-9A-F]{2}\b")


def test_the_first_hour_prints_what_the_page_shows(vcsim: Vcsim, tmp_path: Path) -> None:
    here, pin = vcsim.peers.vcsim, ""
    folder = tmp_path / "first-hour"
    folder.mkdir()
    env = {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}:{vcsim.peers.bin}:{os.environ['PATH']}",
        "GOVC_URL": here,
        "GOVC_USERNAME": USER.partition("@")[0],
        "GOVC_PASSWORD": vcsim.peers.password,
        "GOVC_INSECURE": "1",
        "GOVC_TLS_CA_CERTS": "",
        "NO_COLOR": "1",
    }
    assert VARIES.sub("#", SHA.search(PAGE.read_text())[0]) == "#"
    text = PAGE.read_text().replace("127.0.0.1:8989", here)
    for block in blocks(text):
        typed = commands(block) if block.language == "console" else []
        code = 0
        for command, following in zip(typed, [*typed[1:], None], strict=False):
            if command.line == "echo $?":
                continue
            line = SHA.sub(pin, command.line) if pin else command.line
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            code, printed = done.returncode, (done.stdout + done.stderr).strip("\n")
            pin = pin or next(iter(SHA.findall(printed)), "")
            expected = following is not None and following.line == "echo $?"
            assert code == 0 or expected, f"$ {line}\nended with {code}\n{printed}"
            assert not (wrong := differs(command.printed, printed)), f"$ {line}\n{wrong}"

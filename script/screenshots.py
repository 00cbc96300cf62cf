"""Pictures of what a user sees: commands run in a terminal of their own, and the page that they write, in a
browser without a screen.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from pyVmomi import vim  # noqa: E402 - after the path
from rights.given import administrator  # noqa: E402 - after the path

from bfinfra import sandbox, worlds  # noqa: E402 - after the path

SITE = "specs/singapore-poc.yaml"
WIDTH, LINES = 132, 26  # columns; lines of a picture
DEADLINE = 60  # seconds
SCHEMES = ("light", "dark")
SCREENS = (1100, 400)  # pixels
DRIFT = f"bfinfra drift {SITE} --sandbox"


def main(folder: Path) -> None:
    """Apply the PoC, let somebody change it, and look."""
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="bfinfra-pictures-"))
    os.environ |= {
        "XDG_STATE_HOME": str(home / "xdg"),
        "BFINFRA_STATE_HOME": str(home / "state"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    world = ROOT / "specs/worlds/singapore-poc.yaml"
    running = sandbox.start(world, worlds.state(world), pace=0)
    try:
        picture(folder / "apply.svg", f"bfinfra apply {SITE} --sandbox --yes")
        meddle(running)
        picture(folder / "drift.svg", DRIFT)
        subprocess.run(
            [*f"{DRIFT} --forget --html".split(), str(home / "drift.html")],
            cwd=ROOT,
            check=False,
            capture_output=True,
            timeout=DEADLINE,
        )
        photograph(home / "drift.html", folder)
        photograph_watch(home / "watch.html", folder)
        photograph_documentation(folder)
    finally:
        sandbox.stop(worlds.state(world))
        shutil.rmtree(home)


def meddle(running: sandbox.Running) -> None:
    """Somebody gives the server less memory, and the namespace too."""
    running.change(
        {
            "address": "vcsa.aiml.local:443",
            "method": "PATCH",
            "path": "/api/vcenter/namespaces/instances/cnasg",
            "body": {"resource_spec": {"memory_limit": 65536}},
        }
    )
    with administrator(running) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.VirtualMachine], True)
        server = next(vm for vm in view.view if vm.name == "bf-01")
        for start in (
            server.PowerOffVM_Task,
            lambda: server.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=65536)),
        ):
            task = start()
            while task.info.state not in ("success", "error"):
                pass
            if task.info.state == "error":
                raise SystemExit(task.info.error.msg)


def picture(file: Path, command: str) -> None:
    """What a command prints on a terminal, the last lines of it, as SVG."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    lines = re.sub(r"/\S*/bfinfra-pictures-\w+", "~", printed(command)).splitlines()
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi("\n".join(lines if len(lines) <= LINES else ["…", *lines[-LINES:]])))
    drawn = console.export_svg(title="bfinfra")
    file.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))  # it works offline


def printed(command: str) -> str:
    """Standard output on a terminal; progress, which goes to standard error, is left out."""
    near, far = pty.openpty()
    with subprocess.Popen(
        command.split(),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=far,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"},
    ) as running:
        os.close(far)
        text = b""
        try:
            while block := os.read(near, 65536):
                text += block
        except OSError:  # how a terminal says that its last user has gone
            pass
        _, output = running.communicate(timeout=DEADLINE)
    os.close(near)
    if running.returncode not in (0, 2):
        raise SystemExit(f"{command} ended with {running.returncode}: {output.decode()}")
    return text.decode().replace("\r\n", "\n").rstrip("\n")


@contextmanager
def chromium(scheme: str) -> Iterator[Chrome]:
    """A browser without a screen, of somebody who likes light or dark."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    browser = Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))
    try:
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        yield browser
    finally:
        browser.quit()


def photograph(page: Path, folder: Path) -> None:
    """The page, light and dark, as high as it is."""
    for scheme in SCHEMES:
        with chromium(scheme) as browser:
            browser.get(page.as_uri())
            browser.set_window_size(1480, 900)
            height = int(browser.execute_script("return document.documentElement.scrollHeight"))
            browser.set_window_size(1480, min(2000, height + 150))
            browser.save_screenshot(str(folder / f"drift-{scheme}.png"))


def photograph_watch(page: Path, folder: Path) -> None:
    """The page of a running watch."""
    command = f"bfinfra watch {SITE} --sandbox --html".split()
    with subprocess.Popen(
        [*command, str(page)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            until = time.monotonic() + DEADLINE
            while not page.exists():
                if time.monotonic() > until:
                    raise SystemExit(f"{' '.join(command)} wrote no page")
                time.sleep(0.1)
            on_each_screen(page, folder, "watch")
        finally:
            running.terminate()


def photograph_documentation(folder: Path) -> None:
    """A page of the documentation."""
    on_each_screen(ROOT / "build/site/how-to/start-with-your-vcenter/index.html", folder, "docs")


def on_each_screen(page: Path, folder: Path, name: str) -> None:
    """A page, light and dark, on a wide and on a narrow screen, which it must fit."""
    for scheme in SCHEMES:
        for width in SCREENS:
            with chromium(scheme) as browser:
                browser.execute_cdp_cmd(
                    "Emulation.setDeviceMetricsOverride",
                    {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
                )
                browser.get(page.as_uri())
                if browser.execute_script("return document.documentElement.scrollWidth > innerWidth"):
                    raise SystemExit(f"{page} is wider than {width} px")
                browser.save_screenshot(str(folder / f"{name}-{scheme}-{width}.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""How long short commands take, beside the bare interpreter: .venv/bin/python benchmarks/startup.py [ROUNDS]

Rounds are interleaved, so that what else the machine does falls on all alike; bytecode is there, as after an
installation.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import given

ROOT = Path(__file__).resolve().parents[1]
SITE = str(ROOT / "specs/singapore-poc.yaml")
BARE = "bare interpreter"
COMMANDS: dict[str, tuple[list[str], int | None]] = {  # arguments of the interpreter, goal in milliseconds
    BARE: (["-c", "pass"], None),
    "bfinfra --version": (["-m", "bfinfra", "--version"], 100),
    "bfinfra validate specs/singapore-poc.yaml": (["-m", "bfinfra", "validate", SITE], 300),
    "bfinfra kinds": (["-m", "bfinfra", "kinds"], None),
}
LIBRARIES = ("pydantic", "PyYAML")


def environment(bytecode: Path) -> dict[str, str]:
    """This one, but with bytecode kept in a folder of the run's own, and with what the site's references
    name.
    """
    left = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    secrets = dict.fromkeys(
        ("VCENTER_PASSWORD", "BITFUSION_CUSTOMER_PASSWORD", "HARBOR_USER", "HARBOR_PASSWORD"), "none"
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**left, **secrets, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(bytecode)}


def once(arguments: list[str], env: dict[str, str]) -> float:
    """Milliseconds from start to end; the command must succeed."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=env, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def measured(rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder))
        for arguments, _ in COMMANDS.values():
            once(arguments, env)  # writes the bytecode
        for _ in range(rounds):
            for name, (arguments, _) in COMMANDS.items():
                found[name].append(once(arguments, env))
    return found


def main() -> None:
    rounds = given.numbers(__doc__, rounds=21).rounds
    found = {name: (statistics.median(times), min(times)) for name, times in measured(rounds).items()}
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    print(
        f"bfinfra {version('bfinfra')}, Python {platform.python_version()}, {libraries}; "
        f"{platform.machine()}, {os.cpu_count()} processors; {rounds} rounds"
    )
    print(f"{'':<44}{'median':>9}{'fastest':>9}{'ratio':>8}{'goal':>9}")
    for name, (median, fastest) in found.items():
        goal = COMMANDS[name][1]
        wanted = f"{goal} ms" if goal else ""
        missed = "  missed" if goal and median > goal else ""
        print(
            f"{name:<44}{median:>6.0f} ms{fastest:>6.0f} ms{median / found[BARE][0]:>7.1f}×{wanted:>9}"
            f"{missed}"
        )


if __name__ == "__main__":
    main()

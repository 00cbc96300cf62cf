"""What the fuzzer feeds the command line: site files and archives, by the number; the default suite takes a few of each, script/torture all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bad_input import archives, at_a_desk, fuzz, site_files
from hypothesis import strategies as st

SITE_COMMANDS = (
    ("validate",), ("validate", "--output", "json"), ("plan",), ("validate",), ("graph", "--output", "json"), ("plan", "--output", "markdown"), ("validate", "--output", "markdown"), ("drift",),
    ("plan", "--output", "jsonl"), ("graph", "--dot"), ("history",), ("validate", "--output", "jsonl"),
)  # fmt: skip
OVA_COMMANDS = (("text", "--verify"), ("json",), ("markdown",))
TOKEN_SITE = "site: a\nbitfusion_token:\n  a: {source: {tar: token.tar}}\n"


def sites(times: int, seed: int, folder: Path) -> fuzz.Found:
    """Site files, each through one command."""
    home = at_a_desk.furnished(folder / "site")

    def check(given: tuple[bytes, Sequence[str]], found: fuzz.Found) -> None:
        data, (command, *more) = given
        (home / "site.yaml").write_bytes(data)
        code = at_a_desk.answers(command, str(home / "site.yaml"), *more, codes=(0, 1, 2) if command == "drift" else (0, 1))
        found.count("accepted" if code == 0 else "refused")

    with at_a_desk.alone(folder):
        return fuzz.fuzz(st.tuples(site_files.site_files(), st.sampled_from(SITE_COMMANDS)), check, times, seed, (folder / "home",))


def ovas(times: int, seed: int, folder: Path) -> fuzz.Found:
    """OVAs through `ova inspect`, every other with its content verified."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "broken.ova"

    def check(given: tuple[bytes, Sequence[str]], found: fuzz.Found) -> None:
        data, (output, *more) = given
        path.write_bytes(data)
        code = at_a_desk.answers("ova", "inspect", str(path), "--output", output, *more)
        found.count("accepted" if code == 0 else "refused")

    with at_a_desk.alone(folder):
        return fuzz.fuzz(st.tuples(archives.ovas(), st.sampled_from(OVA_COMMANDS)), check, times, seed, (folder / "home",))


def tokens(times: int, seed: int, folder: Path) -> fuzz.Found:
    """Token archives through a plan, which reads them."""
    home = folder / "site"
    home.mkdir(parents=True, exist_ok=True)
    (home / "site.yaml").write_text(TOKEN_SITE)

    def check(given: tuple[bytes, str], found: fuzz.Found) -> None:
        data, output = given
        (home / "token.tar").write_bytes(data)
        code = at_a_desk.answers("plan", str(home / "site.yaml"), "--output", output)
        found.count("accepted" if code == 0 else "refused")

    with at_a_desk.alone(folder):
        return fuzz.fuzz(st.tuples(archives.tokens(), st.sampled_from(("text", "json", "markdown"))), check, times, seed, (folder / "home",))

"""No secret is anywhere but where it belongs.

More than thirty secrets (passwords with every awkward character, tokens, private keys, a kubeconfig, vApp
passwords, registry accounts, the pepper, a proxy's password, a client certificate's key, and the sessions and
tokens that servers hand out) go through every command, output and level. Servers quote what they were sent in
five forms. Then all outputs, the journal, saved plans, temporary files, the process list and the environment
of every child process are searched for each secret in each form: plain; escaped for JSON, XML and URLs;
base64 at three offsets and twice; hexadecimal; UTF-16; quoted-printable; its beginning and its end. A control
checks that the search finds a secret when hiding is off.
"""

from __future__ import annotations

from collections.abc import Iterator

from torture.counting import Count, Effort
from trust import campaign
from trust.scan import Scanner


def counts(effort: Effort) -> Iterator[Count]:
    if effort.wants("a command line on a site full of secrets"):
        yield from _searched(effort)
    if effort.wants("with hiding switched off, the scan finds it"):
        yield _sabotaged(effort)


def _searched(effort: Effort) -> Iterator[Count]:
    ran = campaign.run(effort.folder / "all", campaign.share if effort.share else campaign.commands)
    scanner = Scanner(ran.secrets)
    lines = Count(
        "a command line on a site full of secrets prints none",
        figures={"secrets": len(ran.secrets), "forms of them": len(scanner)},
    )
    leaks = list(ran.leaks())
    for number, run in enumerate(ran.runs):
        with lines.trial(f"{number}: {' '.join(run['argv'])} {run['echo']}"):
            assert not scanner.text(run["err"], "" if campaign.meant(run) else run["out"])
        lines.add("quoted by a server", bool(run["echo"]))
    yield lines
    elsewhere = Count(
        "a file of state, plan, temporary file or child process holds none",
        tried=len(ran.children) + len(list(ran.files())),
    )
    elsewhere.broken += [
        leak for leak in leaks if leak.startswith(("state/", "tmp/", "cwd/", "home/", "seen/", "process "))
    ]
    elsewhere.figures["child processes, command line and environment"] = len(ran.children)
    yield elsewhere


def _sabotaged(effort: Effort) -> Count:
    count = Count("with hiding switched off, the scan finds it")
    ran = campaign.run(effort.folder / "unhidden", campaign.mishaps, unhidden=True)
    found = "\n".join(ran.leaks())
    for name in sorted(
        each
        for each in ran.secrets
        if each.startswith("registry password") or each in ("appliance password", "private key")
    ):
        with count.trial(name):
            assert name in found
    return count

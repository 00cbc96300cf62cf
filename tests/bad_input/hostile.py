"""What the fuzzer feeds the command line: site files and archives, by the number; the default suite takes a
few of each, script/torture all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bad_input import archives, at_a_desk, corpus, fuzz, site_files
from hypothesis import strategies as st

SITE_COMMANDS = (
    ("validate",),
    ("validate", "--output", "json"),
    ("plan",),
    ("validate",),
    ("graph", "--output", "json"),
    ("plan", "--output", "markdown"),
    ("validate", "--output", "markdown"),
    ("drift", "--forget"),
    ("plan", "--output", "jsonl"),
    ("graph", "--dot"),
    ("history",),
    ("validate", "--output", "jsonl"),
)
OVA_COMMANDS = (("text", "--verify"), ("json",), ("markdown",))
OTHERS_SITE = """\
site: a
vcenter: {server: vc.small.test, username: a@b, password: {env: VCENTER_PASSWORD}, trust: {ca_file: ca.pem}}
kubernetes_cluster: {other: {kubeconfig: {file: other.kubeconfig}}}
workload: {hello: {cluster: other, manifest: manifests/hello.yaml}}
"""
SAVED = """{"format_version": 2, "type": "saved_plan", "site": "a", "destroy": false, "folder": "HOME",
 "paths": ["site.yaml"], "overlays": [], "values": [], "set": {"v": "1"}, "targets": ["workload/hello"],
 "files": {"site.yaml": "0"}, "contents": {"ca.pem": "0"}, "plan": {"site": "a", "problems": [],
 "unreadable": [], "warnings": [], "partial": {"targets": [], "resources": [], "left_out": 0}, "items": [
 {"address": "workload/hello", "kind": "workload", "name": "hello", "action": "create", "follows": [],
  "waits_for": [], "because": {}, "contents": [], "held": null, "steps": [{"step": "Create", "title": "Create it",
  "fields": {"name": "hello"}, "disruption": "none", "destructive": false, "why": "",
  "changes": [{"field": "a", "now": null, "wanted": {"secret": {"env": "A"}}}]}]}]}}"""
TOKEN_SITE = "site: a\nbitfusion_token:\n  a: {source: {tar: token.tar}}\n"


def sites(times: int, seed: int, folder: Path) -> fuzz.Found:
    """Site files, each through one command."""
    home = at_a_desk.furnished(folder / "site")

    def check(given: tuple[bytes, Sequence[str]], found: fuzz.Found) -> None:
        data, (command, *more) = given
        (home / "site.yaml").write_bytes(data)
        code = at_a_desk.answers(
            command, str(home / "site.yaml"), *more, codes=(0, 1, 2) if command == "drift" else (0, 1)
        )
        assert corpus.ran(site_files.CANARY) == [], "a value of the site was run"
        found.count("accepted" if code == 0 else "refused")

    with at_a_desk.alone(folder):
        return fuzz.fuzz(
            st.tuples(site_files.site_files(), st.sampled_from(SITE_COMMANDS)),
            check,
            times,
            seed,
            (folder / "home",),
        )


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
        return fuzz.fuzz(
            st.tuples(archives.ovas(), st.sampled_from(OVA_COMMANDS)), check, times, seed, (folder / "home",)
        )


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
        return fuzz.fuzz(
            st.tuples(archives.tokens(), st.sampled_from(("text", "json", "markdown"))),
            check,
            times,
            seed,
            (folder / "home",),
        )


def files_of_others(times: int, seed: int, folder: Path) -> fuzz.Found:
    """Kubeconfigs, manifests, certificates and saved plans, each right but for a few changes."""
    home = at_a_desk.furnished(folder / "site")
    (home / "site.yaml").write_text(OTHERS_SITE)
    (home / "planfile").write_text(SAVED.replace("HOME", str(home)))
    right = {
        name: (home / name).read_bytes()
        for name in ("other.kubeconfig", "manifests/hello.yaml", "ca.pem", "planfile")
    }

    def check(given: tuple[str, bytes, str], found: fuzz.Found) -> None:
        name, data, output = given
        (home / name).write_bytes(data)
        try:
            command = (
                (("apply", "--yes") if len(data) % 2 else ("show",)) + (str(home / name),)
                if name == "planfile"
                else ("plan", str(home / "site.yaml"))
            )
            found.count("accepted" if at_a_desk.answers(*command, "--output", output) == 0 else "refused")
        finally:
            (home / name).write_bytes(right[name])

    inputs = st.sampled_from(sorted(right)).flatmap(
        lambda name: st.tuples(
            st.just(name), site_files.changed(right[name]), st.sampled_from(("text", "json", "markdown"))
        )
    )
    with at_a_desk.alone(folder):
        return fuzz.fuzz(inputs, check, times, seed, (folder / "home",))

"""What the fuzzer feeds the command line: site files and archives, by the number; the default suite takes a
few of each, script/torture all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx2
from bad_input import archives, at_a_desk, corpus, fuzz, nasty, packed, site_files
from bad_input.memory import Taken
from hypothesis import strategies as st

from bfinfra.backends import limits
from bfinfra.backends.helm import chart
from bfinfra.backends.images import contents
from bfinfra.backends.vcenter import roots, tree
from bfinfra.model.errors import BfinfraError

COST = 200 << 20  # bytes of memory for one archive, or one answer
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


def charts(times: int, seed: int, folder: Path) -> fuzz.Found:
    """Archives of charts through what reads them before helm does."""
    return _read(
        packed.charts(), times, seed, folder, lambda path: chart.contents_of(chart.read(path)), "demo.tgz"
    )


def images(times: int, seed: int, folder: Path) -> fuzz.Found:
    """Archives of container images through what says which images are in them."""
    return _read(packed.images(), times, seed, folder, contents, "image.tar")


def certificates(times: int, seed: int, folder: Path) -> fuzz.Found:
    """vCenter's `/certs/download.zip` through what reads the authorities in it."""
    return _read(
        packed.zips(), times, seed, folder, lambda path: roots.of(_Download(path.read_bytes())), "a.zip"
    )


class _Download:
    """vCenter's REST client, as far as a download goes."""

    server = "vc.example.com"

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def bytes(self, _: str) -> bytes:
        return self._answer


def packed_answers(times: int, seed: int, folder: Path) -> fuzz.Found:
    """Bodies of HTTP answers with a Content-Encoding, through the limits of the transport and both parsers."""

    def check(given: tuple[str, list[bytes]], found: fuzz.Found) -> None:
        encoding, blocks = given
        memory = Taken()
        answer = httpx2.Response(
            200, headers=[(b"content-encoding", encoding.encode())], stream=_Blocks(blocks)
        )
        try:
            body = b"".join(limits.Bounded(answer, limits.PLAIN))
        except limits.Overstepped as error:
            _in_words(f"{error.what} {error.why} {error.next}".replace(encoding[:40], ""))
            found.count("refused")
            return
        assert len(body) <= limits.PLAIN.size
        found.count("accepted")
        for parse in (json.loads, lambda data: tree.parse([data])):
            try:
                parse(body)
            except (ValueError, RecursionError, SyntaxError):
                found.count("accepted, and no document")
        assert memory.peak() < COST, f"{memory.peak() >> 20} MiB of memory"

    folder.mkdir(parents=True, exist_ok=True)
    return fuzz.fuzz(packed.answers(), check, times, seed, (folder,))


class _Blocks(httpx2.SyncByteStream):
    def __init__(self, blocks: Sequence[bytes]) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._blocks)


def _read(
    inputs: st.SearchStrategy[bytes],
    times: int,
    seed: int,
    folder: Path,
    read: Callable[[Path], object],
    name: str,
) -> fuzz.Found:
    """Archives through one function, which accepts them or says in words why not."""
    (folder / "home").mkdir(parents=True, exist_ok=True)
    path = folder / name

    def check(data: bytes, found: fuzz.Found) -> None:
        path.write_bytes(data)
        memory = Taken()  # from here: making some inputs takes more
        try:
            read(path)
        except (ValueError, BfinfraError) as error:
            _in_words(str(error))
            found.count("refused")
        else:
            found.count("accepted")
        assert memory.peak() < COST, f"{memory.peak() >> 20} MiB of memory"

    with at_a_desk.alone(folder):
        return fuzz.fuzz(inputs, check, times, seed, (folder / "home",))


def _in_words(text: str) -> None:
    assert text
    assert len(text) < 2000, len(text)
    assert not nasty.acts(text), text[:500]

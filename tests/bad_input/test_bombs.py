"""Every form of a hostile archive, for every caller that reads one: each is refused by name and with its limit,
within 200 MiB of memory, and nothing is unpacked to a disk.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from bad_input import archives, bombs
from bad_input.memory import Taken

from bfinfra.backends import ova
from bfinfra.backends.bitfusion.archive import members as token_members
from bfinfra.backends.helm import chart
from bfinfra.backends.images import contents as images_in
from bfinfra.backends.vcenter import roots
from bfinfra.model.errors import BfinfraError
from bfinfra.sandbox.factories.image import make_image

MOST = 200 << 20  # bytes of memory that an archive may cost
CHART = {
    "demo/Chart.yaml": b"name: demo\nversion: 1.0.0\n",
    "demo/values.yaml": b"a: 1\n",
    "demo/templates/a.yaml": b'{{ if .Capabilities.APIVersions.Has "policy/v1" }}',
}


@dataclass(frozen=True)
class Caller:
    """Who reads an archive, and what an honest one holds."""

    read: Callable[[Path], object]
    target: bombs.Target


def _image() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        make_image(Path(folder) / "image.tar", image="team/x:1")
        return _files((Path(folder) / "image.tar").read_bytes())


def _files(whole: bytes) -> dict[str, bytes]:

    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}


def _callers() -> dict[str, Caller]:
    appliance, token, image = _files(archives.ova()), _files(archives.token()), _image()
    descriptor = next(name for name in appliance if name.endswith(".ovf"))
    return {
        "chart": Caller(
            lambda path: chart.contents_of(chart.read(path)),
            bombs.Target(CHART, "demo/templates/a.yaml", "demo/b", 20_000),
        ),
        "OVA": Caller(ova.read, bombs.Target(appliance, descriptor, "b", 256, packed=False)),
        "token": Caller(token_members, bombs.Target(token, "ca.crt", "b", 32)),
        "token, not packed": Caller(token_members, bombs.Target(token, "ca.crt", "b", 32, packed=False)),
        "image": Caller(images_in, bombs.Target(image, "manifest.json", "b", 20_000, packed=False)),
    }


CALLERS = _callers()


def refused(caller: Caller, path: Path, temporary: Path) -> str:
    """What the caller says, which takes no memory and no disk."""
    memory = Taken()
    with pytest.raises((ValueError, BfinfraError)) as caught:
        caller.read(path)
    assert memory.peak() < MOST, f"{memory.peak() >> 20} MiB"
    assert list(temporary.iterdir()) == []
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000
    return str(caught.value)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a library would unpack to."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.mark.parametrize("who", CALLERS)
def test_what_is_honest_is_read(who: str, tmp_path: Path) -> None:
    caller = CALLERS[who]
    bombs.write(tmp_path / "a.tar", bombs.honest(caller.target), packed=caller.target.packed)
    assert caller.read(tmp_path / "a.tar")


LONG = {("chart", "too many members"), ("image", "too many members")}
"""20,000 each."""


@pytest.mark.parametrize(
    ("who", "bomb"),
    [
        pytest.param(who, bomb, marks=[pytest.mark.thorough] if (who, bomb) in LONG else [])
        for who in CALLERS
        for bomb in bombs.TARS
    ],
)
def test_a_hostile_tar_is_refused_by_every_caller(
    who: str, bomb: str, tmp_path: Path, temporary: Path
) -> None:
    caller, (blocks, says) = CALLERS[who], bombs.TARS[bomb]
    bombs.write(tmp_path / "bomb.tar", blocks(caller.target), packed=caller.target.packed)
    if who == "image" and bomb == "a symbolic link, written through":
        says = "twice"  # older tools link layers, and nobody follows
    said = refused(caller, tmp_path / "bomb.tar", temporary)
    assert re.search(says, said), said
    assert "bomb.tar" in said


@pytest.mark.parametrize("bomb", bombs.PACKED)
@pytest.mark.parametrize("who", [who for who, each in CALLERS.items() if each.target.packed])
def test_a_hostile_gzip_is_refused_by_every_caller(
    who: str, bomb: str, tmp_path: Path, temporary: Path
) -> None:
    make, says = bombs.PACKED[bomb]
    (tmp_path / "bomb.tgz").write_bytes(make(CALLERS[who].target))
    said = refused(CALLERS[who], tmp_path / "bomb.tgz", temporary)
    assert re.search(says, said), said


def test_charts_within_charts_are_read_to_a_depth_and_pay_together(tmp_path: Path, temporary: Path) -> None:
    caller = CALLERS["chart"]
    path = tmp_path / "demo.tgz"
    path.write_bytes(bombs.nested(caller.target, 8, "demo/charts/sub-1.0.0.tgz"))
    assert chart.contents_of(chart.read(path)).asked == ("policy/v1",)
    path.write_bytes(bombs.nested(caller.target, 9, "demo/charts/sub-1.0.0.tgz"))
    assert "archives within archives; more than 8 deep" in refused(caller, path, temporary)
    noise = b"".join(os.urandom(1 << 10) + bytes(31 << 10) for _ in range(30 << 5))  # it swells 30 times
    inner = gzip.compress(bombs.header("a", len(noise)) + noise + bombs.END, 1)
    many = [bombs.member(f"demo/charts/sub-{number}.tgz", inner) for number in range(5)]
    bombs.write(path, (block for each in many for block in each), packed=True)
    assert "more than 128 MiB unpacked" in refused(caller, path, temporary)


class _Server:
    """vCenter, as far as a download goes."""

    server = "vc.example.com"

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def bytes(self, path: str) -> bytes:
        return self._answer


@pytest.mark.parametrize("bomb", bombs.ZIPS)
def test_a_hostile_zip_of_certificates_is_refused(bomb: str, temporary: Path) -> None:
    make, says = bombs.ZIPS[bomb]
    server = _Server(make())
    memory = Taken()
    with pytest.raises(BfinfraError) as caught:
        roots.of(server)
    assert memory.peak() < MOST, f"{memory.peak() >> 20} MiB"
    assert list(temporary.iterdir()) == []
    said = str(caught.value)
    assert said.startswith("vc.example.com: /certs/download.zip can't be read")
    assert re.search(says, said), said


@pytest.mark.thorough
@pytest.mark.parametrize("who", ["chart", "token", "OVA", "image"])
def test_a_million_members_are_refused(who: str, tmp_path: Path, temporary: Path) -> None:
    target = CALLERS[who].target
    bombs.write(tmp_path / "bomb.tar", bombs.tiny_members(target, 1_000_000), packed=target.packed)
    assert re.search("files|not part of a token", refused(CALLERS[who], tmp_path / "bomb.tar", temporary))

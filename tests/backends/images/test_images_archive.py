"""Archives of images: what is in one, by full names, and what is none."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest

from bfinfra.backends.images import contents, full_name
from bfinfra.backends.images.tools import Tool
from bfinfra.sandbox.factories.image import make_image


def test_an_archive_says_which_image_it_holds_and_the_same_image_has_the_same_id(tmp_path: Path) -> None:
    for name, text in (("a.tar", "one"), ("b.tar", "one"), ("c.tar", "two")):
        make_image(tmp_path / name, image="team/webhook:1", text=text)
    ids = [contents(tmp_path / name)["docker.io/team/webhook:1"] for name in ("a.tar", "b.tar", "c.tar")]
    assert ids[0] == ids[1] != ids[2]
    assert ids[0].startswith("sha256:") and len(ids[0]) == 71


@pytest.mark.parametrize("how", ["compressed", "text", "no manifest"])
def test_what_is_no_archive_of_images_says_why(how: str, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    make_image(path, image="x")
    if how == "compressed":
        path.write_bytes(gzip.compress(path.read_bytes()))
    elif how == "text":
        path.write_text("hello\n" * 200)
    else:
        with tarfile.open(path, "w") as tar:
            tar.add(__file__, "other")
    with pytest.raises(ValueError, match="no manifest" if how == "no manifest" else "unpack a compressed"):
        contents(path)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("team/x:1", "docker.io/team/x:1"),
        ("10.1.0.3:5000/x", "10.1.0.3:5000/x:latest"),
        ("localhost/x:1", "localhost/x:1"),
        ("docker.io/team/x:1", "docker.io/team/x:1"),
    ],
)
def test_names_have_a_registry_and_a_tag(name: str, full: str) -> None:
    assert full_name(name) == full


def test_each_tool_saves_in_its_own_words() -> None:
    saves = {
        name: Tool(name, f"/usr/bin/{name}").save("team/x:1", Path("/s/a.tar"))[1:]
        for name in ("docker", "podman", "buildah")
    }
    assert saves["docker"] == saves["podman"] == ("save", "--output", "/s/a.tar", "team/x:1")
    assert saves["buildah"] == ("push", "team/x:1", "docker-archive:/s/a.tar:docker.io/team/x:1")

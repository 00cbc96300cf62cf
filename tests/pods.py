"""What a kubelet and a container runtime make of a pod of the operator: its volumes with the kubelet's own
links, the image's command line, and an environment that has nothing but the image's and the pod's variables.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONTAINERFILE = Path(__file__).parents[1] / "deploy/Containerfile"
CURRENT = "..2027_01_01_00_00_00.123456789"
Get = Callable[[str, str], Mapping[str, Any]]
"""Kind and name of an object in the pod's namespace → the object."""


def entrypoint() -> list[str]:
    """The image's command line, with the Python that runs the tests as the image's."""
    (words,) = re.findall(r"^ENTRYPOINT (\[.*\])$", CONTAINERFILE.read_text(), re.MULTILINE)
    program, *rest = json.loads(words)
    assert program == "/opt/bfinfra/bin/python"
    return [sys.executable, *rest]


@dataclass
class Pod:
    """A pod with one container. `folder`: for its volumes; `env`: more variables than it has itself."""

    body: Mapping[str, Any]
    get: Get
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def container(self) -> Mapping[str, Any]:
        (found,) = self.body["spec"]["containers"]
        return dict(found)

    @property
    def mounts(self) -> dict[str, Path]:
        """Where each path in the container is here."""
        mounted = self.container["volumeMounts"]
        return {each["mountPath"]: self.folder / each["name"] for each in mounted} | {
            "/dev": self.folder / "dev"
        }

    def prepare(self) -> None:
        """Mount its volumes."""
        for place in self.mounts.values():
            place.mkdir(parents=True)
        for volume in self.body["spec"]["volumes"]:
            if sources := volume.get("projected", {}).get("sources"):
                files = {path: data for each in sources for path, data in self._files(each).items()}
                project(self.folder / volume["name"], files)

    def run(self, cwd: Path | None = None) -> tuple[int, str]:
        """Its exit code and termination message."""
        variables = {each["name"]: self.here(str(each["value"])) for each in self.container["env"]}
        done = subprocess.run(
            [*entrypoint(), *(self.here(word) for word in self.container["args"])],
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", **variables, **self.env},
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        result = Path(self.here(self.container["terminationMessagePath"]))
        told = result.read_text() if result.exists() else (done.stdout + done.stderr)[-2048:]
        return done.returncode, told[:4096]

    def here(self, text: str) -> str:
        """A path in the container as one of this machine; other words as the container gets them."""
        for path, place in self.mounts.items():
            if text == path or text.startswith(f"{path}/"):
                return f"{place}{text.removeprefix(path)}"
        return text.replace("$$", "$")

    def _files(self, source: Mapping[str, Any]) -> dict[str, bytes]:
        if "downwardAPI" in source:
            noted = self.body["metadata"]["annotations"]
            return {
                each["path"]: noted[each["fieldRef"]["fieldPath"].split("'")[1]].encode()
                for each in source["downwardAPI"]["items"]
            }
        if "secret" in source:
            data = self.get("Secret", source["secret"]["name"])["data"]
            return {each["path"]: base64.b64decode(data[each["key"]]) for each in source["secret"]["items"]}
        data = self.get("ConfigMap", source["configMap"]["name"])["data"]
        return {each["path"]: data[each["key"]].encode() for each in source["configMap"]["items"]}


def project(volume: Path, files: Mapping[str, bytes]) -> None:
    """Fill a volume as the kubelet does: all in a dated folder, to which `..data` leads, and through that a
    link for each name at the top.
    """
    for path, data in files.items():
        file = volume / CURRENT / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o440)
    (volume / "..data").symlink_to(CURRENT)
    for top in {path.split("/")[0] for path in files}:
        (volume / top).symlink_to(f"..data/{top}")

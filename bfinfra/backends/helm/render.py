"""Runs `helm template` with an empty home folder, without a cluster and without a way to the network."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bfinfra.backends.helm.chart import ChartFile, contents_of
from bfinfra.backends.words import safe
from bfinfra.model import subprocesses
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.records import dataclass

RENDERING = 60  # seconds
LARGEST = 64 << 20  # bytes of what it renders
PAIR, QUOTES = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"), '""'
NOWHERE = "http://127.0.0.1:9"
"""An address without a proxy: rendering needs no network, and gets none."""


@dataclass(frozen=True)
class Capabilities:
    """The facts about a cluster that templates may read: its Kubernetes version, "" if unknown, and APIs."""

    version: str = ""
    apis: tuple[str, ...] = ()


@dataclass(frozen=True)
class Release:
    """The facts about an installation that templates may read."""

    name: str
    namespace: str
    values: Mapping[str, Any]


def template(chart: ChartFile, release: Release, capabilities: Capabilities) -> str:
    """The rendered manifests, with hooks and definitions. Raises ValueError with helm's words."""
    program = subprocesses.find("helm")
    if program is None:
        raise ValueError(
            "helm is not installed on this machine; install it, or render the chart elsewhere and write "
            "the result under files:"
        )
    contents_of(chart)  # helm unpacks it next, and older ones without a bound
    with tempfile.TemporaryDirectory(prefix="bfinfra-helm-") as folder:
        home = Path(folder)
        write_whole(home / "chart.tgz", chart.content, PRIVATE)
        write_whole(home / "values.yaml", _written(release.values), PRIVATE)
        words = ["template", "--namespace", release.namespace, "--include-crds", "--values", "values.yaml"]
        words += ["--kube-version", capabilities.version] if capabilities.version else []
        words += [word for api in capabilities.apis for word in ("--api-versions", api)]
        return _run([program, *words, "--", release.name, "chart.tgz"], home)


def _written(values: Mapping[str, Any]) -> str:
    """JSON as helm reads it, which is YAML: there a pair of surrogates is no character."""
    return PAIR.sub(lambda found: f"\\U{ord(json.loads(found[0].join(QUOTES))):08x}", json.dumps(values))


def _run(command: list[str], home: Path) -> str:
    environment = {
        "HOME": str(home),
        "PATH": os.defpath,
        "KUBECONFIG": os.devnull,
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
    }
    try:
        done = subprocesses.run(command, env=environment, limit=RENDERING, largest=LARGEST, cwd=home)
    except OSError as error:
        raise ValueError(f"helm can't render it: {error.strerror}") from None
    if done.code:
        raise ValueError(f"helm can't render it: {safe(done.stderr.decode(errors='replace'), 600)}")
    return done.stdout.decode(errors="replace")

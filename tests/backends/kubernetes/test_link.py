"""Several threads at once are the first to ask: of an API, of lightkube, of msgspec."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.thorough

FIRST = """
import os, sys, threading
from bfinfra.backends.kubernetes.link import resource_class
from bfinfra.backends.kubernetes.resources import Resource
from lightkube.core import decoders
from lightkube.models.meta_v1 import ObjectMeta

LIST = b'{"items": [{}], "metadata": {"resourceVersion": "1", "continue": "next"}}'

def write():
    ObjectMeta.from_dict({"labels": {"a": "b"}})

def list_objects():
    for number in range(8):
        kind = resource_class(Resource(f"a.b/v{number}", "Thing", "things", namespaced=True))
        decoders.decode_list(LIST, kind)

def watch():
    decoders.decode_watch_event(b'{"type": "ADDED", "object": {}}')

def read_status():
    decoders.decode_status(b'{"code": 404, "details": {"causes": [{"reason": "x"}]}}')

def race():
    sys.setswitchinterval(1e-6)
    together = threading.Barrier(8)
    def ask():
        together.wait()
        for _ in range(50):
            ACTION()
    threads = [threading.Thread(target=ask) for _ in range(8)]
    [each.start() for each in threads]
    [each.join() for each in threads]

for _ in range(15):
    child = os.fork()
    if child == 0:
        race()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("a child crashed")
"""


@pytest.mark.parametrize("action", ["write", "list_objects", "watch", "read_status"])
def test_many_threads_may_be_the_first(action: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST.replace("ACTION", action)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

"""Several threads at once are the first to ask: of an API, of lightkube, of msgspec."""

from __future__ import annotations

import subprocess
import sys

FIRST = """
import os, sys, threading
import bfinfra.backends.kubernetes.link
from lightkube.models.meta_v1 import ObjectMeta

def race():
    sys.setswitchinterval(1e-6)
    together = threading.Barrier(8)
    def ask():
        together.wait()
        for _ in range(50):
            ObjectMeta.from_dict({"labels": {"a": "b"}})
    threads = [threading.Thread(target=ask) for _ in range(8)]
    [each.start() for each in threads]
    [each.join() for each in threads]

for _ in range(12):
    child = os.fork()
    if child == 0:
        race()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("a child crashed")
"""


def test_many_threads_may_be_the_first_to_write_an_object() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")

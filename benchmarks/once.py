"""Runs a command and writes its seconds, processor seconds and peak memory in MiB to a file, as JSON.

python benchmarks/once.py FILE COMMAND …    A small process in between, as the peak that Linux counts begins
with that of who starts a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    began = time.perf_counter()
    process = subprocess.Popen(sys.argv[2:])
    _, status, used = os.wait4(process.pid, 0)
    seconds, process.returncode = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
    Path(sys.argv[1]).write_text(
        json.dumps(
            {"seconds": seconds, "processor": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss / 1024}
        )
    )
    sys.exit(process.returncode)

"""What the launcher of a TensorFlow benchmark prints."""

from __future__ import annotations

import re

from bfinfra.sandbox.kubernetes.objects import Object

SCRIPT = "tf_cnn_benchmarks.py"
STEP = 10
EACH = {"0": 301.4, "1": 247.9}  # images/sec of a process, by NCCL_IB_DISABLE


def benchmark(container: Object) -> list[str]:
    """The lines; none where the container starts no such benchmark by mpirun."""
    words = [str(each) for each in container.get("command") or []]
    if not words or words[0] != "mpirun" or not any(each.endswith(SCRIPT) for each in words):
        return []
    count = int(next((words[at + 1] for at, each in enumerate(words[:-1]) if each == "-np"), "1"))
    options = dict(re.findall(r"--(\w+)=(\S+)", " ".join(words)))
    slow = next((each.partition("=")[2] for each in words if each.startswith("NCCL_IB_DISABLE=")), "1")
    rate = EACH.get(slow, EACH["1"])
    via = "IB" if slow == "0" else "Socket"
    return [
        "TensorFlow:  1.14", f"Model:       {options.get('model', 'trivial')}", f"Batch size:  {int(options.get('batch_size', '64')) * count} global",
        f"NCCL INFO NET/{via} : Using [0]", "Running warm up", "Done warm up", "Step\tImg/sec\ttotal_loss",
        *(f"{step}\timages/sec: {rate:.1f} +/- 0.0 (jitter = 0.0)\t8.1" for step in range(STEP, 101, STEP)),
        "-" * 64, f"total images/sec: {rate * count:.2f}", "-" * 64,
    ]  # fmt: skip

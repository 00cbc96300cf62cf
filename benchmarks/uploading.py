"""One import of an OVA, as a bitfusion_server's deployment does it: python benchmarks/uploading.py TASK
prints the peak of resident memory in MiB

TASK is JSON: file, name, server, pin, places, verify. vCenter is called while its client library is imported,
as `bfinfra.app.wiring` does it; the password is in $BENCHMARK_PASSWORD.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from pathlib import Path

from bfinfra.cli.main import lean, leave

lean()
gc.enable()  # as `apply` does
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter.connector import Connector
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.model.trust import Trust

USER = "administrator@vsphere.local"


def main(words: str) -> None:
    task = json.loads(words)
    place, transport = task["places"], Transport()
    settings = VCenterSettings(
        server=task["server"],
        username=USER,
        password=Secret("env", "BENCHMARK_PASSWORD"),
        trust=Trust(sha256=task["pin"]),
    )
    connector = Connector(settings, transport, "")
    connector.connect()
    from bfinfra.backends.vcenter import VCenter

    vcenter = VCenter(settings, transport, connector=connector)
    vcenter.session.open()
    from bfinfra.backends import ova
    from bfinfra.backends.vcenter.vm import Hardware, Import

    package = ova.read(Path(task["file"]))
    if task["verify"]:
        ova.verify(package, lambda _: None)
    wanted = Import(
        name=task["name"],
        descriptor=package.descriptor,
        networks={n.name: place["network"] for n in package.networks},
        properties={},
        folder=place["folder"],
        pool=place["pool"],
        host=place["host"],
        datastore=place["datastore"],
        hardware=Hardware(),
        files=package.files,
        open=package.open,
    )
    vcenter.imports.run(wanted, lambda *_: None)
    vcenter.close()
    transport.close()
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak
    print(int(peak[1]) / 1024)


if __name__ == "__main__":
    main(sys.argv[1])
    leave(0)

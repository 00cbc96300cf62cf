"""How the tests of printed rights change it."""

from __future__ import annotations

from typing import Any

from rights.given import administrator, paths
from rights.life import Life
from rights.others import add_disk_to_template, interrupt_import, turn_template_into_vm
from sandbox.asking import Https, Rest, read

from bfinfra.model.rights import Use
from bfinfra.sandbox import Running
from bfinfra.sandbox.factories.descriptor import Appliance, descriptor

OVF_PROPERTIES = (
    "{hostname: sckubw01, customer_password: {env: VCENTER_PASSWORD}, vcenter_url: "
    "https://vc.small.test, vcenter_guid: 4f2c3c0e-6a53-4a0f-9f57-9d3f0c1c2a61, "
    'vcenter_username: u, vcenter_password: {env: VCENTER_PASSWORD}, vcenter_thumbprint: "AB:CD", '
    "network.ip_cidr.1: 10.2.0.77/24}"
)


def library(sandbox: Running, use: Use) -> None:
    """Somebody creates a library with an OVF and a VM template, by plain HTTP."""
    rest, items = Rest(sandbox), "/api/content/library/item"

    def ask(path: str, body: Any = None) -> Any:
        answer = rest.call("POST", path, body)
        assert answer.status < 300, answer
        return answer.data

    store = rest.get("/api/vcenter/datastore?names=local")[0]["datastore"]
    library = ask(
        "/api/content/local-library",
        {
            "name": "images",
            "type": "LOCAL",
            "storage_backings": [{"type": "DATASTORE", "datastore_id": store}],
        },
    )
    item = ask(items, {"library_id": library, "name": "appliance", "type": "ovf"})
    session, text = (
        ask(f"{items}/update-session", {"library_item_id": item}),
        descriptor(Appliance("appliance", "Server", "1-1", (), ("Network 1",))).encode(),
    )
    where = ask(
        f"{items}/update-session/{session}/file",
        {"name": "appliance.ovf", "source_type": "PUSH", "size": len(text)},
    )["upload_endpoint"]["uri"]
    line = Https(rest.host, rest.port, rest.ca_file)
    line.request(
        "PUT", "/" + where.partition("://")[2].partition("/")[2], text, {"vmware-api-session-id": rest.token}
    )
    assert read(line).status < 300
    line.close()
    ask(f"{items}/update-session/{session}?action=complete")
    with administrator(sandbox) as si:
        source = paths(si)["/dc/vm/centos-7.6"]._moId
    ask(
        "/api/vcenter/vm-template/library-items",
        {
            "source_vm": source,
            "name": "centos",
            "library": library,
            "placement": {"cluster": rest.get("/api/vcenter/cluster?names=farm")[0]["cluster"]},
        },
    )


LIFE = Life(
    prepare=add_disk_to_template,
    changes=(
        ("cpus: 4", "cpus: 6\n    disk: 200GiB"),
        ("memory: 24GiB", "memory: 32GiB\n    reserve: true"),
        (
            "[{network: VM Network}]\n    disks: {scsi0:1: {size: 40GiB}}",
            "[{network: Storage Network}]\n    disks: {scsi1:0: {size: 60GiB}}",
        ),
    ),
    drifts=(turn_template_into_vm,),
)
VARIANTS = {
    "virtual_machine from a library": Life(
        example=(
            (
                "  sckubw01:\n",
                (
                    "  from-template:\n    library: {name: images, item: centos}\n    cluster: farm\n"
                    "    datastore: local\n    cpus: 1\n    memory: 1GiB\n    disks: {scsi0:1: {size: 1GiB}}\n"
                    "  sckubw01:\n"
                ),
            ),
            (
                "template: centos-7.6",
                f"library: {{name: images, item: appliance}}\n    properties: {OVF_PROPERTIES}",
            ),
        ),
        prepare=library,
        changes=(
            ("cpus: 4", "cpus: 6"),
            ("memory: 24GiB", "memory: 32GiB\n    reserve: true"),
            ("[{network: VM Network}]", "[{network: Storage Network}]"),
            ("size: 40GiB", "size: 60GiB"),
            ("    disks: {scsi0:1: {size: 1GiB}}\n", ""),
            ("hostname: sckubw01", "hostname: other"),
        ),
        drifts=(interrupt_import,),
    )
}

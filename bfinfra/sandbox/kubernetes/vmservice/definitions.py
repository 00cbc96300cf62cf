"""The resource definitions of the VM Service, as far as its users fill them in. Source: vm-operator's Go
types v1alpha3 to v1alpha6, which agree in these fields.
"""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.tanzu_definitions import FREE, MACHINES, NUMBER, TEXT, define, fields

REGISTRY = "imageregistry.vmware.com"
STORED, LATER = "v1alpha3", ("v1alpha4", "v1alpha5", "v1alpha6")
EITHER: Any = {"x-kubernetes-int-or-string": True}
MODE: Any = {"type": "string", "enum": ["Hard", "Soft", "TrySoft"], "default": "TrySoft"}
SELECTOR = fields("name", "key", name=TEXT, key=TEXT)


def definitions() -> list[Object]:
    """Machines, their services and images, and the libraries that images are from."""
    content = fields(spec=FREE, status=FREE)
    return [
        _served("VirtualMachine", _machine(), "vm"),
        _served("VirtualMachineService", _service(), "vmservice"),
        _served("VirtualMachineImage", content, "vmi", written=False),
        _served("ClusterVirtualMachineImage", content, "cvmi", namespaced=False, written=False),
        define(REGISTRY, "ContentLibrary", "contentlibraries", content, short="cl"),
        define(REGISTRY, "ContentLibraryItem", "contentlibraryitems", content, short="clitem"),
    ]


def _served(
    kind: str, schema: Object, short: str, *, namespaced: bool = True, written: bool = True
) -> Object:
    """`written`: controllers write its status; what vCenter shows comes with it."""
    later: Any = {version: (schema, []) for version in LATER}
    return define(
        MACHINES,
        kind,
        f"{kind.lower()}s",
        schema,
        short=short,
        namespaced=namespaced,
        status=written,
        version=STORED,
        later=later,
    )


def _mapped(item: Object, key: str) -> Object:
    return {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
    }


def _machine() -> Object:
    value: Any = {"from": SELECTOR, "value": TEXT}
    claim = fields("claimName", claimName=TEXT, readOnly={"type": "boolean"})
    bootstrap = fields(
        cloudInit=fields(
            rawCloudConfig=SELECTOR, cloudConfig=FREE, sshAuthorizedKeys={"type": "array", "items": TEXT}
        ),
        linuxPrep=FREE,
        sysprep=FREE,
        vAppConfig=fields(
            properties=_mapped(fields("key", key=TEXT, value=fields(**value)), "key"), rawProperties=TEXT
        ),
    )
    probe = fields(
        tcpSocket=fields("port", port=EITHER, host=TEXT),
        guestHeartbeat=FREE,
        guestInfo={"type": "array", "items": FREE},
        timeoutSeconds={**NUMBER, "minimum": 1, "maximum": 60},
        periodSeconds={**NUMBER, "minimum": 1},
    )
    spec = fields(
        image=fields("kind", "name", kind=TEXT, name=TEXT),
        imageName=TEXT,
        className=TEXT,
        storageClass=TEXT,
        bootstrap=bootstrap,
        network=fields(
            disabled={"type": "boolean"},
            hostName=TEXT,
            interfaces=_mapped(
                {**fields("name", name=TEXT, network=FREE), "x-kubernetes-preserve-unknown-fields": True},
                "name",
            ),
        ),
        powerState={"type": "string", "enum": ["PoweredOff", "PoweredOn", "Suspended"]},
        powerOffMode=MODE,
        suspendMode=MODE,
        restartMode=MODE,
        nextRestartTime=TEXT,
        volumes=_mapped(fields("name", name=TEXT, persistentVolumeClaim=claim), "name"),
        readinessProbe=probe,
        advanced=FREE,
        reserved=FREE,
        instanceUUID=TEXT,
        biosUUID=TEXT,
        minHardwareVersion=NUMBER,
        groupName=TEXT,
        guestID=TEXT,
        affinity=FREE,
        crypto=FREE,
    )
    return fields(spec=spec, status=FREE)


def _service() -> Object:
    port = fields(
        "name", "protocol", "port", "targetPort", name=TEXT, protocol=TEXT, port=NUMBER, targetPort=NUMBER
    )
    spec = fields(
        "type",
        type=TEXT,
        ports={"type": "array", "items": port},
        selector={"type": "object", "additionalProperties": TEXT},
        loadBalancerIP=TEXT,
        loadBalancerSourceRanges={"type": "array", "items": TEXT},
        clusterIp=TEXT,
        externalName=TEXT,
    )
    return fields(spec=spec, status=FREE)

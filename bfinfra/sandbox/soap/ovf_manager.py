"""OvfManager: descriptors read, checked and turned into import specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import ovf_hardware, ovf_properties
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.ovf_descriptor import Descriptor, parse

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

MANAGER = "vim.OvfManager"
REMEMBERED = 500
PROVISIONING = (
    "thin",
    "thick",
    "eagerZeroedThick",
    "monolithicSparse",
    "monolithicFlat",
    "sparse",
    "flat",
    "seSparse",
)


@method(MANAGER, "CreateImportSpec", writes=False)
def create_import_spec(call: Call, manager: Managed, args: Any) -> Any:
    """The specification to import; `error` has what is wrong with the descriptor or the mappings."""
    result = vim.OvfManager.CreateImportSpecResult()
    try:
        descriptor = parse(args.ovfDescriptor)
        params, host = args.cisp, target(call, args)
        networks, warnings = map_networks(call, descriptor, params, host)
        values = ovf_properties.given(params.propertyMapping)
        result.error = ovf_properties.problems(descriptor, values)
        result.warning = warnings
        provision = params.diskProvisioning or "thick"
        if provision not in PROVISIONING:
            result.error = [
                *result.error,
                vim.fault.OvfUnsupportedDiskProvisioning(
                    lineNumber=1,
                    diskProvisioning=provision,
                    supportedDiskProvisioning=", ".join(PROVISIONING),
                ),
            ]
        if result.error:
            return result
        name = params.entityName or descriptor.name
        devices = ovf_hardware.device_changes(
            descriptor, networks, thin=provision in ("thin", "sparse", "seSparse")
        )
        spec = config_spec(descriptor, name, call.inventory.get(args.datastore), values)
        spec.deviceChange = devices
    except vim.fault.OvfFault as error:
        result.error = [*result.error, error]
        return result
    result.importSpec = vim.vm.VmImportSpec(configSpec=spec, resPoolEntity=args.resourcePool)
    result.fileItem = file_items(descriptor, name, spec)
    expect(manager, result.fileItem)
    return result


def expect(manager: Managed, items: list[Any]) -> None:
    """Remember the sizes of the files to upload: the import that follows must upload them all."""
    known = manager.hidden.setdefault("expected", {})
    known.update({item.deviceId: item.size or 0 for item in items})
    for old in list(known)[:-REMEMBERED]:
        del known[old]


def target(call: Call, args: Any) -> Managed:
    """The host of the deployment, or one of the pool's cluster. InvalidArgument where the datastore isn't
    mounted there.
    """
    inventory = call.inventory
    owner = inventory.get(inventory.get(args.resourcePool)["owner"])
    hosts = (
        [inventory.get(args.cisp.hostSystem)]
        if args.cisp.hostSystem
        else [each for each in inventory.children(owner) if each.is_a(vim.HostSystem)]
    )
    fitting = [host for host in hosts if args.datastore in host["datastore"]]
    if not fitting:
        store = inventory.get(args.datastore)
        raise vmodl.fault.InvalidArgument(
            invalidProperty="datastore",
            msg=(
                f"A specified parameter was not correct: {store.name} is mounted by no host of the deployment"
            ),
        )
    return fitting[0]


def map_networks(
    call: Call, descriptor: Descriptor, params: Any, host: Managed
) -> tuple[dict[str, str], list[Any]]:
    """The target's network by the descriptor's name: as mapped, else the one of the same name, else the
    first, with a warning.
    """
    mapped = {each.name: call.inventory.get(each.network).name for each in params.networkMapping or []}
    there = [call.inventory.get(ref).name for ref in host["network"]]
    warnings = []
    for name in descriptor.networks:
        if name not in mapped:
            mapped[name] = name if name in there else there[0] if there else name
            if name not in there:
                warnings.append(
                    vim.fault.OvfUnsupportedElementValue(
                        lineNumber=1,
                        name="Network",
                        value=name,
                        msg=f"The network '{name}' is not mapped; it becomes '{mapped[name]}'.",
                    )
                )
    unknown = sorted(set(mapped) - set(descriptor.networks))
    if unknown:
        raise vim.fault.OvfUnsupportedElementValue(
            lineNumber=1,
            name="Network",
            value=unknown[0],
            msg=f"The OVF descriptor has no network '{unknown[0]}'.",
        )
    return mapped, warnings


def config_spec(descriptor: Descriptor, name: str, store: Managed, values: dict[str, str]) -> Any:
    """The machine's specification, its devices left out."""
    config = descriptor.config
    return vim.vm.ConfigSpec(
        name=name,
        version=ovf_hardware.family(descriptor.family),
        guestId=guest_id(descriptor.os_type),
        annotation=descriptor.annotation or None,
        files=vim.vm.FileInfo(vmPathName=f"[{store.name}]"),
        numCPUs=ovf_hardware.quantity(descriptor, ovf_hardware.CPU, 1),
        memoryMB=ovf_hardware.quantity(descriptor, ovf_hardware.MEMORY, 512),
        firmware=config.get("firmware"),
        memoryHotAddEnabled=flag(config, "memoryHotAddEnabled"),
        cpuHotAddEnabled=flag(config, "cpuHotAddEnabled"),
        extraConfig=[vim.option.OptionValue(key=key, value=value) for key, value in descriptor.extra.items()],
        vAppConfig=ovf_properties.vapp_spec(descriptor, values)
        if descriptor.products or descriptor.eulas
        else None,
    )


def flag(config: dict[str, str], key: str) -> bool | None:
    """A `vmw:Config` that is true or false; None where it isn't given."""
    return config[key] == "true" if key in config else None


def guest_id(os_type: str) -> str:
    """The guest id of a `vmw:osType`: they are the same but for the case of the first letter."""
    return os_type or "otherGuest64"


def file_items(descriptor: Descriptor, name: str, spec: Any) -> list[Any]:
    """The files to upload, each with the disk that it fills."""
    keys = ovf_hardware.import_keys(name, spec.deviceChange)
    disks = [each.device for each in spec.deviceChange if isinstance(each.device, vim.vm.device.VirtualDisk)]
    items = sorted(
        (item for item in descriptor.items if item.kind == ovf_hardware.DISK),
        key=lambda item: int(item.fields.get("AddressOnParent") or 0),
    )
    found = []
    for item, device in zip(items, disks, strict=True):
        disk = descriptor.disks[ovf_hardware.disk_id(item)]
        file = descriptor.files.get(disk.file)
        if disk.file and file is None:
            raise vim.fault.OvfInvalidValue(
                lineNumber=1,
                elementName="Disk",
                attributeName="fileRef",
                value=disk.file,
                msg=f"The OVF disk {disk.id} names no file of the package.",
            )
        if file is not None:
            found.append(
                vim.OvfManager.FileItem(
                    deviceId=keys[device.key],
                    path=file.href,
                    compressionMethod=file.compression or None,
                    chunkSize=file.chunk or None,
                    size=file.size or None,
                    cimType=ovf_hardware.DISK,
                    create=False,
                )
            )
    return found


@method(MANAGER, "ParseDescriptor", writes=False)
def parse_descriptor(_: Call, __: Managed, args: Any) -> Any:
    """Parse the descriptor, without a target."""
    try:
        found = parse(args.ovfDescriptor)
    except vim.fault.OvfFault as error:
        return vim.OvfManager.ParseDescriptorResult(
            annotation="", defaultEntityName="", defaultDeploymentOption="", error=[error]
        )
    vapp = ovf_properties.vapp_spec(found, {})
    sizes = sum(each.size for each in found.files.values())
    return vim.OvfManager.ParseDescriptorResult(
        eula=list(found.eulas),
        network=[
            vim.OvfManager.NetworkInfo(name=name, description=text) for name, text in found.networks.items()
        ],
        ipAllocationScheme=[],
        ipProtocols=["IPv4"],
        property=[each.info for each in vapp.property],
        productInfo=vapp.product[0].info if vapp.product else None,
        annotation=found.annotation,
        approximateDownloadSize=sizes,
        approximateFlatDeploymentSize=sum(each.capacity for each in found.disks.values()),
        approximateSparseDeploymentSize=sizes,
        defaultEntityName=found.name,
        virtualApp=False,
        defaultDeploymentOption="",
        entityName=[],
    )


@method(MANAGER, "ValidateHost", writes=False)
def validate_host(call: Call, _: Managed, args: Any) -> Any:
    """Check that the machine fits the host."""
    try:
        found = parse(args.ovfDescriptor)
    except vim.fault.OvfFault as error:
        return vim.OvfManager.ValidateHostResult(error=[error])
    host, errors = call.inventory.get(args.host), []
    cpus = ovf_hardware.quantity(found, ovf_hardware.CPU, 1)
    if cpus > host["hardware"].cpuInfo.numCpuThreads:
        errors.append(
            vim.fault.NumVirtualCpusNotSupported(
                maxSupportedVcpusDest=host["hardware"].cpuInfo.numCpuThreads, numberOfCpusConfigured=cpus
            )
        )
    return vim.OvfManager.ValidateHostResult(
        downloadSize=sum(each.size for each in found.files.values()),
        flatDeploymentSize=sum(each.capacity for each in found.disks.values()),
        supportedDiskProvisioning=list(PROVISIONING),
        error=errors,
    )

"""The service instance and its managers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import field, vim, vmodl

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGERS = {
    "viewManager": "ViewManager",
    "setting": "VpxSettings",
    "sessionManager": "SessionManager",
    "authorizationManager": "AuthorizationManager",
    "userDirectory": "UserDirectory",
    "eventManager": "EventManager",
    "taskManager": "TaskManager",
    "customFieldsManager": "CustomFieldsManager",
    "searchIndex": "SearchIndex",
    "fileManager": "FileManager",
    "ovfManager": "OvfManager",
    "virtualDiskManager": "virtualDiskManager",
}
WITHOUT_METHODS = {
    "alarmManager": "AlarmManager",
    "certificateManager": "certificateManager",
    "clusterProfileManager": "ClusterProfileManager",
    "complianceManager": "MoComplianceManager",
    "cryptoManager": "CryptoManager",
    "customizationSpecManager": "CustomizationSpecManager",
    "datastoreNamespaceManager": "DatastoreNamespaceManager",
    "diagnosticManager": "DiagMgr",
    "dvSwitchManager": "DVSManager",
    "extensionManager": "ExtensionManager",
    "failoverClusterConfigurator": "FailoverClusterConfigurator",
    "failoverClusterManager": "FailoverClusterManager",
    "guestCustomizationManager": "GuestCustomizationManager",
    "guestOperationsManager": "guestOperationsManager",
    "healthUpdateManager": "HealthUpdateManager",
    "hostProfileManager": "HostProfileManager",
    "hostSpecManager": "HostSpecificationManager",
    "ioFilterManager": "IoFilterManager",
    "ipPoolManager": "IpPoolManager",
    "licenseManager": "LicenseManager",
    "localizationManager": "LocalizationManager",
    "overheadMemoryManager": "OverheadMemoryManager",
    "perfManager": "PerfMgr",
    "scheduledTaskManager": "ScheduledTaskManager",
    "serviceManager": "ServiceMgr",
    "siteInfoManager": "SiteInfoManager",
    "snmpSystem": "SnmpSystem",
    "storageQueryManager": "StorageQueryManager",
    "storageResourceManager": "StorageResourceManager",
    "tenantManager": "TenantManager",
    "vStorageObjectManager": "VStorageObjectManager",
    "vmCompatibilityChecker": "CompatChecker",
    "vmProvisioningChecker": "ProvChecker",
}
"""Those that every vCenter has, with their ids. The sandbox has none of their methods; clients find them."""


def add_services(inventory: Inventory, root: Managed) -> None:
    """One object a manager, with the ids that vCenter uses."""
    collector = inventory.add(vmodl.query.PropertyCollector, "propertyCollector", filter=[])
    managers = {
        name: inventory.add(field(vim.ServiceInstanceContent, name).type, moid).ref
        for name, moid in {**MANAGERS, **WITHOUT_METHODS}.items()
    }
    content = vim.ServiceInstanceContent(
        rootFolder=root.ref, propertyCollector=collector.ref, about=about(inventory.world.vcenter), **managers
    )
    inventory.add(
        vim.ServiceInstance,
        "ServiceInstance",
        content=content,
        capability=vim.Capability(
            provisioningSupported=True,
            multiHostSupported=True,
            userShellAccessSupported=False,
            networkBackupAndRestoreSupported=True,
        ),
    )
    inventory.objects["CustomFieldsManager"]["field"] = [machine_identity(inventory)]
    inventory.objects["VpxSettings"]["setting"] = [
        vim.option.OptionValue(key="VirtualCenter.InstanceName", value=inventory.world.vcenter.host),
        vim.option.OptionValue(key="config.vmacore.soap.sessionTimeout", value="30"),
    ]


def machine_identity(inventory: Inventory) -> Any:
    """The custom attribute that Auto Deploy makes in every vCenter, and that no user's role may read."""
    right = "AutoDeploy.Host.AssociateMachine"
    policy = vim.PrivilegePolicyDef(
        createPrivilege=right, readPrivilege=right, updatePrivilege=right, deletePrivilege=right
    )
    return vim.CustomFieldsManager.FieldDef(
        key=int(inventory.new_id("", 101)),
        name="AutoDeploy.MachineIdentity",
        type=str,
        managedObjectType=vim.HostSystem,
        fieldDefPrivileges=policy,
        fieldInstancePrivileges=policy,
    )


def about(vcenter: Any) -> Any:
    """The server's description of itself; `version` is the API version, as "8.0.3.0"."""
    version = ".".join(vcenter.version.split(".")[:3])
    return vim.AboutInfo(
        name="VMware vCenter Server",
        fullName=f"VMware vCenter Server {version} build-24022515",
        vendor="VMware, Inc.",
        version=version,
        build="24022515",
        localeVersion="INTL",
        localeBuild="000",
        osType="linux-x64",
        productLineId="vpx",
        apiType="VirtualCenter",
        apiVersion=vcenter.version,
        instanceUuid=vcenter.instance_uuid,
        licenseProductName="VMware VirtualCenter Server",
        licenseProductVersion="8.0",
    )

"""CustomFieldsManager: custom attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

MANAGER = "vim.CustomFieldsManager"


@method(MANAGER, "AddCustomFieldDef")
def add(call: Call, this: Managed, args: Any) -> Any:
    """A new attribute for a type of entity, or for all. DuplicateName where it overlaps one of the same
    name.
    """
    for each in this["field"]:
        if each.name == args.name and (
            each.managedObjectType is None or args.moType is None or each.managedObjectType == args.moType
        ):
            raise vim.fault.DuplicateName(
                name=args.name, object=this.ref, msg=f"The name '{args.name}' already exists."
            )
    made = vim.CustomFieldsManager.FieldDef(
        key=int(call.inventory.new_id("", 101)),
        name=args.name,
        type=str,
        managedObjectType=args.moType,
        fieldDefPrivileges=args.fieldDefPolicy,
        fieldInstancePrivileges=args.fieldPolicy,
    )
    this["field"] = [*this["field"], made]
    call.inventory.touch(this)
    return made


def definition(this: Managed, key: int) -> Any:
    """The attribute of a key. InvalidArgument where there is none."""
    for each in this["field"]:
        if each.key == key:
            return each
    raise vmodl.fault.InvalidArgument(
        invalidProperty="key",
        msg=f"A specified parameter was not correct: there is no custom attribute {key}",
    )


@method(MANAGER, "SetField")
def set_field(call: Call, this: Managed, args: Any) -> None:
    """An entity's value; "" empties it. InvalidArgument where the attribute is for another type."""
    entity, found = call.inventory.get(args.entity), definition(this, args.key)
    kind = found.managedObjectType
    if kind is not None and not issubclass(type(entity.ref), kind):
        raise vmodl.fault.InvalidArgument(
            invalidProperty="entity",
            msg=f"A specified parameter was not correct: '{found.name}' is no attribute of a {entity.kind}",
        )
    others = [each for each in entity.props.get("value") or [] if each.key != args.key]
    entity["value"] = [*others, vim.CustomFieldsManager.StringValue(key=args.key, value=args.value)]
    call.inventory.touch(entity)


@method("vim.ManagedEntity", "setCustomValue")
def set_custom_value(call: Call, this: Managed, args: Any) -> None:
    """The same by the attribute's name."""
    manager = call.inventory.objects["CustomFieldsManager"]
    for each in manager["field"]:
        if each.name == args.key:
            args.entity, args.key = this.ref, each.key
            set_field(call, manager, args)
            return
    raise vmodl.fault.InvalidArgument(
        invalidProperty="key",
        msg=f"A specified parameter was not correct: there is no custom attribute '{args.key}'",
    )


@method(MANAGER, "RenameCustomFieldDef")
def rename(call: Call, this: Managed, args: Any) -> None:
    """Another name for an attribute."""
    definition(this, args.key).name = args.name
    call.inventory.touch(this)


@method(MANAGER, "RemoveCustomFieldDef")
def remove(call: Call, this: Managed, args: Any) -> None:
    """Delete an attribute and all its values."""
    this["field"] = [each for each in this["field"] if each is not definition(this, args.key)]
    for entity in call.inventory.of(vim.ManagedEntity):
        values = entity.props.get("value") or []
        if any(each.key == args.key for each in values):
            entity["value"] = [each for each in values if each.key != args.key]
            call.inventory.touch(entity)
    call.inventory.touch(this)

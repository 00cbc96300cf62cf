"""Describes an existing machine as a site writes it."""

from __future__ import annotations

from collections.abc import Sequence

from bfinfra.kinds.supervisor.service_vm import manifest as form
from bfinfra.kinds.supervisor.service_vm.catalog import Found
from bfinfra.kinds.supervisor.service_vm.state import State
from bfinfra.model.description import Description, Path, variable


def description(name: str, state: State, images: Sequence[Found]) -> Description:
    """The objects in a site's fields. Contents of Secrets are to be filled in."""
    view = state.view()
    of = next((each for each in images if each.image[1] == form.image_of(state.body)[1]), None)
    fill_in: dict[Path, str] = {}
    properties = dict(view.pop("properties", {}))
    for key in sorted(properties):
        if str(properties[key]).startswith(form.STORED_IN):
            del properties[key]
            fill_in["properties", key] = f"a secret, such as {{env: {variable(name, key)}}}"
    cloud_init = dict(view.pop("cloud_init", {}))
    if cloud_init.pop("user_data", None):
        fill_in["cloud_init", "user_data"] = f"a secret, such as {{file: secrets/{name}.yaml}}"
    disks = {
        disk: {field: value for field, value in each.items() if field != "attached"}
        for disk, each in view.pop("disks").items()
    }
    fields = {
        "namespace": state.namespace,
        "image": {"library": of.library if of else "", "item": of.item if of else ""},
        **view,
        "properties": properties,
        **({"cloud_init": cloud_init} if cloud_init or ("cloud_init", "user_data") in fill_in else {}),
        "disks": disks,
    }
    left_out = "" if of and of.library else "nobody says which item of a library it is made of"
    strange = form.volumes(state.body).keys() - disks.keys()
    if strange:
        left_out = (
            f"its disks {', '.join(sorted(strange))} are claims that belong to no machine by their names"
        )
    return Description(name, fields, state, fill_in, left_out)

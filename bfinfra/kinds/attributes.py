"""The custom attributes that hold the marks of kinds whose objects have no other place for one. vCenter has a
definition of an attribute only while something has a mark of that kind.
"""

from __future__ import annotations

ATTRIBUTES = {
    "cluster_option": "bfinfra.drs.",
    "host_firewall_rule": "bfinfra.firewall.",
    "host_graphics": "bfinfra.graphics.",
    "host_image": "bfinfra.image.",
    "host_option": "bfinfra.option.",
    "registry": "bfinfra.registry",
    "supervisor": "bfinfra.supervisor",
    "vmkernel_adapter": "bfinfra.vmkernel.",
}
"""Kind → its attribute, or how the names of its attributes begin. A kind that isn't here is always looked
for.
"""

"""The table of kinds and one kind's fields, from docstrings and annotations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bfinfra.model.document import Document
from bfinfra.model.kind import Kind, Source
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part, Spec, State
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.units import Bytes, Megahertz, PciId, Seconds
from bfinfra.render import fields, kinds


class Limits(Part):
    cpu: Megahertz | None = None
    """Most that the virtual machines
    in it may take."""
    memory: Bytes = 2**30
    """Likewise."""


class Device(Part):
    vendor: PciId
    """The maker."""


class SpaceSpec(Spec):
    cluster: str
    """Name of the vSphere cluster."""
    limits: Limits = Limits()
    """Ceilings."""
    storage: dict[str, Annotated[Bytes, Field(gt=0)]] = Field(default_factory=dict)
    """Policy → limit."""
    hosts: tuple[Annotated[str, Ref("gpu_host", "any_host")], ...] = ()
    """Hosts."""
    devices: tuple[Device, ...] = ()
    """Devices."""
    role: Literal["edit", "view"] = "edit"
    """Role."""
    password: Secret | None = None
    """Password."""
    ova: LocalFile | None = None
    """File."""
    wait: Seconds = 600
    """Patience."""


class Space(Kind[SpaceSpec, State]):
    """A namespace on a supervisor.

    More words.
    """

    document = Document.SINGAPORE_POC
    deadline = 300


class Token(Source[Spec, State]):
    """A client token."""

    document = Document.FLEXDIRECT


def test_the_table_has_a_line_a_kind():
    assert (
        kinds.table({"space": Space, "a_token": Token})
        == """\
space    singapore-poc  A namespace on a supervisor.
a_token  flexdirect     A client token.

The fields of one: bfinfra kinds KIND"""
    )


def test_one_kind_shows_every_field_with_type_default_and_meaning():
    assert (
        kinds.one("space", Space)
        == """\
space: A namespace on a supervisor.
from: Singapore PoC: machine learning on Tanzu Kubernetes with Bitfusion (specs/singapore-poc.yaml)
refers to: any_host, gpu_host
becomes ready within 5m, or the apply ends as still waiting

  cluster: text, required
      Name of the vSphere cluster.
  limits: fields
      Ceilings.
    limits.cpu: frequency, such as 48GHz
        Most that the virtual machines in it may take.
    limits.memory: size, such as 128GiB, default 1GiB
        Likewise.
  storage: name → size, such as 128GiB
      Policy → limit.
  hosts: list of name of a gpu_host or any_host
      Hosts.
  devices: list of fields
      Devices.
    devices[].vendor: PCI id, such as 0x10de, required
        The maker.
  role: edit | view, default edit
      Role.
  password: secret reference
      Password.
  ova: file
      File.
  wait: time, such as 10m, default 10m
      Patience.
  protect: true or false, default false
      Refuse to delete or replace this resource, whatever the command line allows.
  after: list of text
      Addresses of resources, kind/name, that must be ready before this one is started, for reasons that
      bfinfra can't know. Deletion runs in the reverse order."""
    )


def test_programs_read_the_same():
    (found,) = kinds.data({"space": Space})["kinds"]
    assert (found["kind"], found["refers_to"], found["deadline"], found["document"]) == (
        "space",
        ["any_host", "gpu_host"],
        300,
        "singapore-poc",
    )
    assert {
        "field": "limits.memory",
        "type": "size, such as 128GiB",
        "required": False,
        "default": 2**30,
        "about": "Likewise.",
    } in found["fields"]


def test_units_follow_dotted_paths_through_pieces_and_mappings():
    unit = fields.units({"space": SpaceSpec})
    assert [
        unit("space", path)
        for path in (
            "limits.cpu",
            "limits.memory",
            "storage.bf-k8s",
            "wait",
            "cluster",
            "nowhere.at.all",
            "limits",
        )
    ] == ["MHz", "bytes", "bytes", "seconds", "", "", ""]
    assert unit("unknown", "limits.cpu") == ""


def test_a_page_has_a_row_a_field_and_the_example():
    page = kinds.page("space", Space, "site: example\n").splitlines()
    assert page[:5] == [
        "# space",
        "",
        "A namespace on a supervisor.",
        "",
        (
            "From: Singapore PoC: machine learning on Tanzu Kubernetes with Bitfusion "
            "([specs/singapore-poc.yaml](../../../specs/singapore-poc.yaml))."
        ),
    ]
    assert "| `limits.memory` | size, such as 128GiB | `1GiB` | Likewise. |" in page
    assert "| `role` | edit \\| view | `edit` | Role. |" in page
    assert page[-3:] == ["```yaml", "site: example", "```"]


def test_the_index_has_each_kind_under_its_document():
    text = kinds.index({"space": Space, "a_token": Token})
    assert (
        text.index("## Singapore PoC")
        < text.index("- [space](space.md)")
        < text.index("## Network-attached")
        < text.index("- [a_token](a_token.md): A client token.")
    )


def test_what_a_kind_provides_and_comes_after_is_shown_in_its_own_words():
    class Ordered(Spec):
        def provides(self, name, site):
            """GPUs for pods."""
            return ()

        def requires(self, name, site):
            """Its namespace.

            Nor this.
            """
            return ()

    class Plugin(Source[Ordered, State]):
        """A plug-in."""

        document = Document.FLEXDIRECT

    lines = kinds.one("plugin", Plugin).splitlines()
    assert lines[2:4] == ["provides: GPUs for pods.", "comes after: its namespace."]
    assert "Provides: GPUs for pods." in kinds.page("plugin", Plugin, "site: s")

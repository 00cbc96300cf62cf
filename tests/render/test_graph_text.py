"""The graph as a tree and as DOT."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from bfinfra.kinds.vcenter.gpu_host.spec import Spec as Host
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec
from bfinfra.render.graph import data, dot, mermaid, page, svg, tree

HOST, SERVER, TOKEN, SPACE = (
    Key("gpu_host", "h"),
    Key("bitfusion_server", "bf"),
    Key("bitfusion_token", "t"),
    Key("supervisor_namespace", "n"),
)
CLUSTER, SECRET, JOB = Key("tanzu_cluster", "c"), Key("token_secret", "s"), Key("workload", "w")
BEFORE = {
    SERVER: {HOST: ""},
    HOST: {},
    TOKEN: {},
    SPACE: {},
    CLUSTER: {SPACE: ""},
    SECRET: {CLUSTER: "", TOKEN: ""},
    JOB: {SECRET: "", CLUSTER: "", SERVER: "remote GPUs"},
}


def test_what_can_start_is_on_the_left_and_what_waits_is_below_it():
    assert (
        tree(BEFORE)
        == """\
gpu_host/h
└─ bitfusion_server/bf
   └┄ workload/w  (remote GPUs)
bitfusion_token/t
└─ token_secret/s
   └─ workload/w
supervisor_namespace/n
└─ tanzu_cluster/c
   ├─ token_secret/s (*)
   └─ workload/w"""
    )


def test_a_reference_to_a_missing_resource_is_shown_as_well():
    assert tree({SERVER: {HOST: ""}}) == "gpu_host/h\n└─ bitfusion_server/bf"


def test_dot_has_an_arrow_for_each_wait_and_says_why_where_no_field_names_it():
    assert (
        dot({SERVER: {HOST: ""}, HOST: {}, JOB: {SERVER: 'a "GPU"'}}, 'a"b')
        == """\
digraph "a\\"b" {
  rankdir=LR;
  node [shape=box, fontname=monospace];
  "bitfusion_server/bf";
  "gpu_host/h";
  "workload/w";
  "gpu_host/h" -> "bitfusion_server/bf";
  "bitfusion_server/bf" -> "workload/w" [style="dashed", label="a \\"GPU\\""];
}"""
    )


def test_data_names_what_each_waits_for():
    assert data({JOB: {HOST: "", SERVER: "remote GPUs"}}, "poc") == {
        "format_version": 1,
        "type": "graph",
        "site": "poc",
        "resources": [
            {
                "address": "workload/w",
                "waits_for": ["gpu_host/h", "bitfusion_server/bf"],
                "because": {"bitfusion_server/bf": "remote GPUs"},
            }
        ],
    }


def test_a_large_site_is_drawn_quickly():
    keys = [Key("k", str(n)) for n in range(300)]
    before = {key: dict.fromkeys(keys[max(0, n - 2) : n], "") for n, key in enumerate(keys)}
    assert len(tree(before).splitlines()) < 1000


def test_mermaid_draws_an_arrow_from_what_comes_first():
    assert (
        mermaid({HOST: {}, SERVER: {HOST: ""}, JOB: {SERVER: 'remote "GPUs"'}})
        == """\
flowchart LR
  r0["gpu_host/h"]
  r1["bitfusion_server/bf"]
  r2["workload/w"]
  r0 --> r1
  r1 -. "remote #34;GPUs#34;" .-> r2"""
    )


def test_a_picture_needs_no_other_file():
    specs = {HOST: Host(passthrough=({"vendor": "0x10de", "device": "0x1db6", "count": 2},)), SERVER: Spec()}
    root = ET.fromstring(svg({HOST: {}, SERVER: {HOST: ""}}, specs))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.find("{http://www.w3.org/2000/svg}style") is not None
    names = [each.get("aria-label") for each in root.iter() if (each.get("class") or "").startswith("box")]
    assert len(names) == 2
    assert "bitfusion_server/bf" in names
    assert not [name for name in names if "up to date" in str(name)]


def test_the_page_of_a_graph_needs_nothing_else():
    text = page({SERVER: {}}, {SERVER: Spec()}, "poc")
    assert "http:" not in text
    assert "<title>poc: graph</title>" in text

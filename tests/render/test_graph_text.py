"""The graph as a tree and as DOT."""

from __future__ import annotations

from bfinfra.model.refs import Key
from bfinfra.render.graph import data, dot, tree

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


def test_what_can_start_stands_left_and_below_it_what_waits():
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


def test_what_is_referred_to_but_stands_nowhere_is_shown_as_well():
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
  "bitfusion_server/bf" -> "workload/w" [style=dashed, label="a \\"GPU\\""];
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

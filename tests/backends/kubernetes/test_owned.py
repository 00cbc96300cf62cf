from __future__ import annotations

from bfinfra.backends.kubernetes.owned import handed_over, owned


def pod(*entries):
    return {
        "metadata": {"labels": {"a": "1", "b": "2"}, "managedFields": list(entries)},
        "spec": {
            "containers": [
                {"name": "x", "image": "i", "env": [{"name": "N", "value": "2"}]},
                {"name": "sidecar", "image": "s"},
            ],
            "tolerations": ["p", "q"],
        },
    }


def entry(manager, fields, operation="Apply", **more):
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def test_only_the_managers_own_fields_are_left_items_of_lists_by_their_keys():
    fields = {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {
            "f:containers": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:image": {}}},
            "f:tolerations": {'v:"q"': {}},
        },
    }
    assert owned(
        pod(entry("bfinfra", fields), entry("kubectl", {"f:metadata": {"f:labels": {"f:b": {}}}}))
    ) == {
        "metadata": {"labels": {"a": "1"}},
        "spec": {"containers": [{"name": "x", "image": "i"}], "tolerations": ["q"]},
    }


def test_what_is_owned_by_making_and_by_applying_counts_together():
    both = pod(
        entry("bfinfra", {"f:metadata": {"f:labels": {"f:a": {}}}}, "Update"),
        entry("bfinfra", {"f:metadata": {"f:labels": {"f:b": {}}}}),
    )
    assert owned(both)["metadata"]["labels"] == {"a": "1", "b": "2"}


def test_the_status_belongs_to_nobody_here():
    assert owned(pod(entry("bfinfra", {"f:spec": {}}, subresource="status"))) == {}


def test_a_makers_fields_are_handed_over_to_the_applier_once():
    theirs = entry("kubectl", {"f:metadata": {"f:labels": {"f:b": {}}}}, "Update")
    made = pod(theirs, entry("bfinfra", {"f:metadata": {"f:labels": {"f:a": {}}}}, "Update"))
    fields = handed_over(made)
    assert fields == [theirs, entry("bfinfra", {"f:metadata": {"f:labels": {"f:a": {}}}}, "Apply")]
    assert handed_over(pod(*fields)) is None

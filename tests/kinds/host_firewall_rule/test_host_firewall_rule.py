"""What the tests of every kind change in a firewall rule; tests/kinds/host_option has those of settings of hosts."""

CHANGED_FIELDS = [
    {"enabled": False},
    {"hosts": ["esx1.small.test", "esx2.small.test"]},
    {"ruleset": "nowhere"},
]

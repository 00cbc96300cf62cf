"""bfinfra in a cluster: `Site` objects, a short-lived Job for each look at one of them, and what it found in
the object's status.
"""

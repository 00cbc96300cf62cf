"""bfinfra in a cluster: `Site` objects, a short-lived Job for each check of one, and the result in its
status.
"""

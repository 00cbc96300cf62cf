"""The watchers: replicas that share the Sites of a namespace with `watch: true`, follow their servers, and
report in `status.watch`.
"""

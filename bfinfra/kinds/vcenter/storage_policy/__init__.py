"""A storage policy, which selects datastores by their tags. The claims of a namespace name it. (Solution
setup: storage class bf-k8s.)
"""

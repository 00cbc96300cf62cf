"""A storage policy: which datastores will do, by their tags; a namespace's claims name it. (Solution setup:
storage class bf-k8s.)
"""

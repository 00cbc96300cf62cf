"""Whether pods reach the Bitfusion servers: by the cluster's policies, and by a pod that tries. (Egress from
the Kubernetes clusters is routed to the server farm.)
"""

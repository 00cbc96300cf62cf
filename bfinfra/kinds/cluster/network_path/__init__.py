"""A path from pods to the Bitfusion servers, judged by the cluster's policies and tried by a pod. (Egress
from the Kubernetes clusters is routed to the server farm.)
"""

"""What the manifests of NVIDIA's device plug-in make, by release."""

from __future__ import annotations

UPSTREAM = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: kube-system}
spec:
  selector: {matchLabels: {name: nvidia-device-plugin-ds}}
  updateStrategy: {type: RollingUpdate}
  template:
    metadata: {labels: {name: nvidia-device-plugin-ds}}
    spec:
      tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
      priorityClassName: system-node-critical
      containers:
      - image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        name: nvidia-device-plugin-ctr
        env: []
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: kubelet-device-plugins-dir, mountPath: /var/lib/kubelet/device-plugins}]
      volumes: [{name: kubelet-device-plugins-dir, hostPath: {path: /var/lib/kubelet/device-plugins, type: Directory}}]
"""
"""What deployments/static/nvidia-device-plugin.yml of v0.20.0 makes."""
OLD = (
    UPSTREAM.replace("v0.20.0", "v0.14.5")
    .replace("env: []", "env: [{name: FAIL_ON_INIT_ERROR, value: 'false'}]")
    .replace("kubelet-device-plugins-dir", "device-plugin")
    .replace("/device-plugins, type: Directory}}]", "/device-plugins}}]")
)
"""And that of v0.14.5, with another volume and a variable."""
OLDEST = OLD.replace(
    "env: [{name: FAIL_ON_INIT_ERROR, value: 'false'}]", "args: [--fail-on-init-error=false]"
).replace("nvcr.io/nvidia/k8s-device-plugin:v0.14.5", "nvidia/k8s-device-plugin:v0.7.3")

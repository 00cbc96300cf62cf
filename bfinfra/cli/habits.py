"""Commands and options of other tools, and what does the same in bfinfra."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    # Terraform
    "console": "bfinfra evaluates no expressions; bfinfra plan SITE shows the values",
    "force-unlock": "bfinfra keeps no state file, so there is no lock to release",
    "login": "bfinfra logs in for each run; bfinfra doctor SITE tries the credentials",
    "output": (
        "bfinfra plan SITE --output json has every value; bfinfra kubeconfig SITE ADDRESS prints "
        "access to a cluster"
    ),
    "providers": "bfinfra kinds lists what a site may have; nothing is downloaded",
    "refresh": "bfinfra keeps no state file; bfinfra drift SITE compares the live state with the site",
    "taint": "nothing is replaced by name; bfinfra plan SITE shows what must be replaced and why",
    "test": "bfinfra apply SITE --sandbox tries a site without a server",
    "untaint": "nothing is marked for replacement; bfinfra plan SITE shows what must be replaced and why",
    "workspace": "use an overlay: bfinfra plan SITE --overlay prod.yaml",
    "state mv": "rename the resource in the file, then bfinfra adopt SITE ADDRESS marks its object anew",
    "state pull": "there is no state file; bfinfra get SITE -o json has the live state",
    "state push": "there is no state file: objects carry the site's mark",
    "state rm": "there is no state file; bfinfra state forget ADDRESS SITE forgets what is gone",
    # kubectl
    "annotate": "add the field to the site, then bfinfra apply SITE",
    "api-resources": "bfinfra kinds lists the kinds of resources",
    "auth": (
        "bfinfra doctor SITE tries the credentials; bfinfra privileges SITE shows the rights that they need"
    ),
    "cluster-info": "bfinfra doctor SITE shows the servers and their versions",
    "config": "bfinfra kubeconfig SITE ADDRESS prints access to a cluster of the site",
    "cordon": "kubectl cordon does it, with the access that bfinfra kubeconfig SITE ADDRESS prints",
    "cp": "kubectl cp does it, with the access that bfinfra kubeconfig SITE ADDRESS prints",
    "create": "bfinfra apply SITE creates what is missing",
    "delete": "bfinfra destroy SITE deletes all; remove one resource from the file, then bfinfra apply SITE",
    "describe": "bfinfra get ADDRESS SITE -o yaml shows a resource; bfinfra explain KIND shows its fields",
    "diff": "bfinfra plan SITE shows what apply would change; bfinfra drift SITE who changed what",
    "drain": "kubectl drain does it, with the access that bfinfra kubeconfig SITE ADDRESS prints",
    "edit": "edit the site's file, then bfinfra apply SITE",
    "events": "bfinfra drift SITE shows who changed what and when; bfinfra watch SITE keeps showing it",
    "exec": "kubectl exec does it, with the access that bfinfra kubeconfig SITE ADDRESS prints",
    "label": "add the field to the site, then bfinfra apply SITE",
    "logs": "bfinfra history SITE shows earlier runs; BFINFRA_TRACEBACK=1 shows where an error came from",
    "patch": "add the field to the site, then bfinfra apply SITE",
    "replace": (
        "bfinfra plan SITE shows what must be replaced; bfinfra apply SITE --allow-delete ADDRESS does it"
    ),
    "rollout": (
        "bfinfra apply SITE waits until each resource is ready; bfinfra health SITE checks the machines"
    ),
    "scale": "change the number in the site, then bfinfra apply SITE",
    "top": "kubectl top does it, with the access that bfinfra kubeconfig SITE ADDRESS prints",
    "wait": "bfinfra apply SITE waits until each resource is ready, --deadline TIME for how long",
    # govc
    "about": "bfinfra doctor SITE shows the servers and their versions",
    "device.info": "bfinfra get ADDRESS SITE -o yaml shows a machine's or a host's devices",
    "env": "bfinfra reads GOVC_URL, GOVC_USERNAME and GOVC_PASSWORD, too; bfinfra doctor SITE tries them",
    "find": "bfinfra get SITE lists what the site has on the servers",
    "host.info": "bfinfra get gpu_host SITE -o yaml shows the site's hosts",
    "host.maintenance.enter": "apply does it where a host must restart and the site has reboot: if_needed",
    "import.ova": (
        "add a bitfusion_server to the site, then bfinfra apply SITE; bfinfra ova inspect FILE shows an OVA"
    ),
    "ls": "bfinfra get SITE lists what the site has on the servers",
    "object.collect": "bfinfra get ADDRESS SITE -o yaml shows a resource; bfinfra watch SITE follows changes",
    "pool.create": "add a resource_pool to the site, then bfinfra apply SITE",
    "session.login": "bfinfra logs in for each run; bfinfra doctor SITE tries the credentials",
    "tree": "bfinfra graph SITE shows the resources and their order",
    "vm.create": "add a virtual_machine to the site, then bfinfra apply SITE",
    "vm.info": "bfinfra get ADDRESS SITE -o yaml shows a resource",
    "vm.power": "set power: on or off in the site, then bfinfra apply SITE",
    # Ansible
    "galaxy": "the collection bfinfra.core comes with the package; nothing is downloaded",
    "inventory": (
        "bfinfra graph SITE shows what the site has; bfinfra plan SITE --output json has the addresses"
    ),
    "playbook": "bfinfra apply SITE runs a site; the module bfinfra.core.site runs it from a playbook",
    "vault": "a site names secrets by {env: NAME} or {file: PATH}; put the vault into one",
    # Pulumi and Helm
    "check": "bfinfra validate SITE checks the file; bfinfra doctor SITE checks the servers",
    "down": "bfinfra destroy SITE deletes all that the site made",
    "install": "bfinfra apply SITE creates what is missing",
    "list": "bfinfra get SITE lists what the site has on the servers",
    "preview": "bfinfra plan SITE shows what apply would do",
    "remove": "bfinfra destroy SITE deletes all; remove one resource from the file, then bfinfra apply SITE",
    "rm": "bfinfra destroy SITE deletes all; remove one resource from the file, then bfinfra apply SITE",
    "rollback": (
        "put the earlier file back, then bfinfra apply SITE; bfinfra history SITE shows what was applied"
    ),
    "run": "bfinfra apply SITE",
    "stack": "use an overlay: bfinfra plan SITE --overlay prod.yaml",
    "status": (
        "bfinfra drift SITE compares the live state with the site; bfinfra health SITE checks the machines"
    ),
    "sync": "bfinfra apply SITE makes the servers match the site",
    "template": "bfinfra render SITE prints the site, with overlays merged and values filled in",
    "uninstall": "bfinfra destroy SITE deletes all that the site made",
    "up": "bfinfra apply SITE makes the servers match the site",
    "upgrade": "change the version in the site, then bfinfra apply SITE",
}
"""Command of another tool → what does the same here."""

OPTIONS: Mapping[str, str] = {
    # Terraform
    "-backend": "there is no state file, so there is no backend for one",
    "-backend-config": "there is no state file, so there is no backend for one",
    "-chdir": "cd there, or name the site's file",
    "-compact-warnings": "--output json has warnings apart from errors",
    "-input": "only apply, destroy and adopt ask, and with --yes none does",
    "-lock": "nothing is locked: there is no state file",
    "-lock-timeout": "nothing is locked: there is no state file",
    "-refresh": "each run reads the live state",
    "-refresh-only": "bfinfra drift SITE compares without changing",
    "fmt -recursive": "name the folders: bfinfra fmt . prod",
    "-replace": "bfinfra plan SITE shows what must be replaced and why",
    "-state": "there is no state file: objects carry the site's mark",
    "-type": "bfinfra graph SITE shows the order of an apply; a destroy runs in reverse",
    "fmt -write": "bfinfra fmt --diff SITE writes nothing",
    "-var": "--set NAME=VALUE gives a value that the site declares under values:",
    "-var-file": "--values FILE gives values that the site declares under values:",
    "-upgrade": "nothing is downloaded, so there is nothing to upgrade",
    # kubectl and Helm
    "--all": "bfinfra destroy SITE deletes all that the site made",
    "--context": "a site names its clusters itself: see bfinfra explain kubernetes_cluster",
    "--dry-run": "bfinfra plan SITE shows what apply would do, and never writes",
    "--filename": "name the file itself: bfinfra apply site.yaml",
    "--force": "--allow-delete ADDRESS and --allow-disruption ADDRESS name what may be deleted or disrupted",
    "--kubeconfig": "a site names its kubeconfigs itself: see bfinfra explain kubernetes_cluster",
    "--namespace": "a site's resources name their namespaces",
    "--prune": "apply deletes what the site no longer has, with --allow-delete ADDRESS",
    "--server-side": "bfinfra always applies on the server's side, field by field",
    "--timeout": "--deadline TIME is how long to wait for each resource",
    "--wait": "apply always waits until each resource is ready",
    "--watch": "bfinfra watch SITE keeps running and reports drift when it happens",
    "--all-namespaces": "a site's resources name their namespaces",
    "--client": "bfinfra version contacts no server",
    "--recursive": "bfinfra kinds KIND shows the fields in their fields, too",
    "--selector": "--target ADDRESS is one resource and what it needs; repeat it",
    "-A": "a site's resources name their namespaces",
    "apply -k": "an overlay does this: bfinfra apply site.yaml --overlay prod.yaml",
    "-f": "name the file itself: bfinfra apply site.yaml",
    "-l": "--target ADDRESS is one resource and what it needs; repeat it",
    "-n": "a site's resources name their namespaces",
    "-R": "name the folder: bfinfra apply FOLDER",
    "-w": "bfinfra watch SITE keeps running and reports drift when it happens",
    # govc
    "-k": "bfinfra trust SITE shows the certificate and the line that trusts it; nothing turns the check off",
    "-u": "add vcenter.server to the site, or set GOVC_URL",
    "--insecure": (
        "bfinfra trust SITE shows the certificate and the line that trusts it; nothing turns the check off"
    ),
    # Ansible
    "--ask-vault-pass": "a site names secrets by {env: NAME} or {file: PATH}; put the vault into one",
    "--become": "each linux_host says whether it uses sudo: see bfinfra explain linux_host",
    "--check": "bfinfra plan SITE shows what apply would do, and never writes",
    "--diff": "bfinfra plan SITE shows each field before and after",
    "--extra-vars": "--set NAME=VALUE gives a value that the site declares under values:",
    "--inventory": "a site's hosts are its linux_host resources",
    "--limit": "--target ADDRESS is one resource and what it needs; repeat it",
    "--list-hosts": "bfinfra graph SITE shows the site's resources",
    "--list-tasks": "bfinfra plan SITE shows each step",
    "--syntax-check": "bfinfra validate SITE checks the file",
    "--tags": "--target ADDRESS is one resource and what it needs; repeat it",
    "-D": "bfinfra plan SITE shows each field before and after",
    "-b": "each linux_host says whether it uses sudo: see bfinfra explain linux_host",
    "-C": "bfinfra plan SITE shows what apply would do, and never writes",
    "-e": "--set NAME=VALUE gives a value that the site declares under values:",
    "-i": "a site's hosts are its linux_host resources",
}
"""Option of another tool → what does the same here."""


def command(word: str) -> str:
    """Return the counterpart of another tool's command; "" if no known tool has it."""
    return COMMANDS.get(word, "")


def option(word: str, verb: str = "") -> str:
    """Return the counterpart of another tool's option after this command of ours; "" if no known tool has
    it.
    """
    other = f"-{word}" if not word.startswith("--") else word[1:]
    places = (f"{verb} {word}", f"{verb} {other}", word, other)
    return next((OPTIONS[place] for place in places if place in OPTIONS), "")

#!/usr/bin/env bash
# Real Cluster API on a kube-apiserver of its own: core, kubeadm bootstrap and control plane, and the provider whose
# machines are in memory; all webhooks, no cert-manager. Built from the Go module proxy.
#
#   capi.sh build            build what is missing in $KUBE_BIN     (2 cores shared with others, Kubernetes' packages
#                            compiled before: 17 min; built: 0 s)
#   capi.sh up               start; prints `export CAPI_KUBECONFIG=...`   (10 s)
#   capi.sh down             kill what `up` started and delete the data
#
# Environment: KUBE_BIN, PEERS_DIR, BUILD_DIR as in script/peers. One at a time on a machine: the clusters in memory
# listen on fixed ports of one loopback address.
set -euo pipefail
cd "$(dirname "$0")"
CAPI=${CAPI:-1.14.2}                # sigs.k8s.io/cluster-api, /api and /test; k8s.io/* v0.36.3, as kube.sh
HOST=127.45.0.1                     # the API servers of the clusters in memory
export PEERS_DIR=${PEERS_DIR:-$HOME/.cache/bfinfra-peers}
export KUBE_BIN=${KUBE_BIN:-$PEERS_DIR/bin} KUBE_DIR=$PEERS_DIR/cluster-api KUBE_WITH=kcm
BUILD_DIR=${BUILD_DIR:-$PEERS_DIR/build}/cluster-api
MODULE=sigs.k8s.io/cluster-api
declare -A PACKAGES=(
  [core]=$MODULE/core
  [bootstrap]=$MODULE/bootstrap/kubeadm
  [control-plane]=$MODULE/controlplane/kubeadm
  [dev]=$MODULE/test/infrastructure/docker
)
MANAGERS=(core bootstrap control-plane dev)

started() { sed 's/.*) //' "/proc/$1/stat" 2> /dev/null | cut -d' ' -f20; }
freeport() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
kubectl() { "$KUBE_BIN/kubectl" --kubeconfig "$KUBE_DIR/admin.kubeconfig" "$@"; }

module() {
  mkdir -p "$BUILD_DIR"; cd "$BUILD_DIR"
  {
    printf 'module local/clusterapi\n\ngo 1.26.0\n\ngodebug default=go1.26\n\nrequire (\n'
    for m in "" /api /test; do printf '\t%s v%s\n' "$MODULE$m" "$CAPI"; done
    printf ')\n\nreplace (\n'
    for m in "" /api; do printf '\t%s => %s v%s\n' "$MODULE$m" "$MODULE$m" "$CAPI"; done
    printf ')\n'
  } > go.mod
}

build() {
  local want=() m t0=$SECONDS
  for m in "${MANAGERS[@]}"; do [ -x "$KUBE_BIN/capi-$m" ] || want+=("$m"); done
  [ ${#want[@]} -gt 0 ] || return 0
  mkdir -p "$KUBE_BIN"
  (
    module
    export GOFLAGS=-mod=mod CGO_ENABLED=0
    for m in "${want[@]}"; do go get "${PACKAGES[$m]}@v$CAPI" 2> /dev/null; done
    for m in "${want[@]}"; do
      echo "building Cluster API: $m" >&2
      nice -n 10 go build -trimpath -tags notest,grpcnotrace -ldflags "-s -w" -o "$KUBE_BIN/.capi-$m" "${PACKAGES[$m]}"
      mv "$KUBE_BIN/.capi-$m" "$KUBE_BIN/capi-$m"
    done
  )
  echo "  $((SECONDS - t0)) s" >&2
}

folder() { (cd / && go mod download -json "$MODULE${1:-}@v$CAPI") | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'; }

up() {
  build
  ./kube.sh up > /dev/null
  [ -f "$KUBE_DIR/capi" ] && { echo "export CAPI_KUBECONFIG=$KUBE_DIR/admin.kubeconfig"; return; }
  local p=$KUBE_DIR/pki m ports=()
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$p/tls.key" -subj /CN=webhooks -out "$p/webhooks.csr" 2> /dev/null
  openssl x509 -req -in "$p/webhooks.csr" -CA "$p/ca.crt" -CAkey "$p/ca.key" -CAcreateserial -days 30 \
    -extfile <(printf 'extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1\n') -out "$p/tls.crt" 2> /dev/null
  for m in "${MANAGERS[@]}"; do ports+=("$m=$(freeport)"); done
  local main test; main=$(folder); test=$(folder /test)
  "${BFINFRA_PYTHON:-python3}" capi_manifests.py "$p/ca.crt" "${ports[@]}" -- core="$main/core" bootstrap="$main/bootstrap/kubeadm" \
    control-plane="$main/controlplane/kubeadm" dev="$test/infrastructure/docker" | kubectl apply --server-side --force-conflicts -f - > /dev/null
  kubectl wait --for=condition=Established crd --all --timeout=30s > /dev/null
  for m in "${ports[@]}"; do manager "${m%%=*}" "${m#*=}"; done
  for m in "${ports[@]}"; do listening "${m%%=*}" "${m#*=}"; done
  touch "$KUBE_DIR/capi"
  echo "export CAPI_KUBECONFIG=$KUBE_DIR/admin.kubeconfig"
}

listening() {   # a manager, or its log's end and an error
  local p t
  read -r p t < "$KUBE_DIR/capi-$1.pid"
  for _ in $(seq 600); do
    (exec 3<> "/dev/tcp/127.0.0.1/$2") 2> /dev/null && return
    [ "$(started "$p")" = "$t" ] || break
    sleep 0.1
  done
  echo "Cluster API's $1 does not run:" >&2; tail -3 "$KUBE_DIR/log/capi-$1.log" >&2; return 1
}

manager() {
  local m=$1 port=$2
  local gates=ClusterTopology=true,MachinePool=false
  POD_NAMESPACE=default POD_NAME="capi-$m" POD_UID=00000000-0000-0000-0000-000000000000 POD_IP=$HOST KUBECONFIG=$KUBE_DIR/admin.kubeconfig \
    setsid "$KUBE_BIN/capi-$m" --webhook-port="$port" --webhook-cert-dir="$KUBE_DIR/pki" --diagnostics-address="127.0.0.1:$(freeport)" \
    --insecure-diagnostics --health-addr="127.0.0.1:$(freeport)" --feature-gates="$gates" --v=2 \
    > "$KUBE_DIR/log/capi-$m.log" 2>&1 < /dev/null & local pid=$!
  echo "$pid $(started "$pid")" > "$KUBE_DIR/capi-$m.pid"
}

down() {
  local f p t
  for f in "$KUBE_DIR"/capi-*.pid; do
    [ -f "$f" ] && read -r p t < "$f" && [ "$(started "$p")" = "$t" ] && kill -9 "$p"
  done
  ./kube.sh down
}

case "${1:-}" in build | up | down) "$1" ;; *) sed -n 2,12p "$0" >&2; exit 2 ;; esac

#!/usr/bin/env bash
# A real kube-apiserver + etcd (+ controller-manager, scheduler, kwok) on loopback, built from the Go module proxy.
#
#   kube.sh build            build what is missing in $KUBE_BIN      (2 cores, nothing cached: 7.4 min; built: 0 s)
#   kube.sh up               start; prints `export KUBECONFIG=...`   (3.5 s bare, 4 s kcm, 4.5 s all)
#   kube.sh down             kill what `up` started (by pid + start time) and delete the data
#   kube.sh reset            down + up
#   kube.sh status           pids, RSS, readyz
#
# Environment:
#   KUBE_BIN   binaries            ($HOME/.cache/bfinfra-peers/bin)
#   KUBE_DIR   data, pki, logs     ($HOME/.cache/bfinfra-peers/run)   one directory = one cluster; several may run at once
#   KUBE_WITH  parts besides etcd+kube-apiserver: any of "kcm scheduler kwok"   (all)
#   KUBE_PORT  API port, 0 = a free one   (0)
#   KUBE_STORE etcd | kine         (etcd)
#   KUBE_NODES fake nodes when kwok runs  (2)
set -euo pipefail
K8S=${K8S:-1.36.3}                 # k8s.io/kubernetes v1.36.3  <->  staging modules v0.36.3
ETCD=${ETCD:-3.6.8}                # what k8s.io/kubernetes v1.36.3 itself pins
KWOK=${KWOK:-0.8.0}
KINE=${KINE:-0.16.4}
KUBE_BIN=${KUBE_BIN:-$HOME/.cache/bfinfra-peers/bin}
KUBE_DIR=${KUBE_DIR:-$HOME/.cache/bfinfra-peers/run}
KUBE_WITH=${KUBE_WITH-kcm scheduler kwok}
KUBE_PORT=${KUBE_PORT:-0}
KUBE_STORE=${KUBE_STORE:-etcd}
KUBE_NODES=${KUBE_NODES:-2}
BUILD_DIR=${BUILD_DIR:-$HOME/.cache/bfinfra-peers/build}

has() { case " $KUBE_WITH " in *" $1 "*) return 0;; *) return 1;; esac; }
freeport() { python3 - <<'PY'
import socket
s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])
PY
}

build() {   # one module and one `go build`: what the binaries have in common is compiled once
  mkdir -p "$KUBE_BIN"
  local want=() pkgs=() b
  for b in kube-apiserver kube-controller-manager kube-scheduler kubectl etcd; do [ -x "$KUBE_BIN/$b" ] || want+=("$b"); done
  ! has kwok || [ -x "$KUBE_BIN/kwok" ] || want+=(kwok)
  if [ ${#want[@]} -gt 0 ]; then
    mkdir -p "$BUILD_DIR/etcd"; cd "$BUILD_DIR"
    {
      printf 'module local/kubepeers\n\ngo 1.26.0\n\ngodebug default=go1.26\n\n'
      printf 'require (\n\tk8s.io/kubernetes v%s\n\tgo.etcd.io/etcd/server/v3 v%s\n)\n\nreplace (\n' "$K8S" "$ETCD"
      for m in api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider \
               cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api \
               cri-client cri-streaming csi-translation-lib dynamic-resource-allocation endpointslice externaljwt \
               kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics \
               mount-utils pod-security-admission sample-apiserver streaming; do
        printf '\tk8s.io/%s => k8s.io/%s v0.%s\n' "$m" "$m" "${K8S#1.}"
      done
      printf ')\n'
    } > go.mod
    rm -f go.sum
    printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' > etcd/main.go
    export GOFLAGS=-mod=mod CGO_ENABLED=0
    go get k8s.io/kubernetes/cmd/kube-apiserver@v$K8S k8s.io/kubernetes/cmd/kube-controller-manager@v$K8S \
           k8s.io/kubernetes/cmd/kube-scheduler@v$K8S k8s.io/kubernetes/cmd/kubectl@v$K8S \
           go.etcd.io/etcd/server/v3/etcdmain@v$ETCD sigs.k8s.io/kwok/cmd/kwok@v$KWOK
    local p=k8s.io/component-base/version minor=${K8S#1.}; minor=${minor%%.*}
    local ld="-s -w -X $p.gitVersion=v$K8S -X $p.gitMajor=1 -X $p.gitMinor=$minor -X $p.gitTreeState=clean -X $p.gitCommit=go-module-proxy"
    for b in "${want[@]}"; do
      case $b in etcd) pkgs+=(./etcd) ;; kwok) pkgs+=(sigs.k8s.io/kwok/cmd/kwok) ;; *) pkgs+=("k8s.io/kubernetes/cmd/$b") ;; esac
    done
    echo "building ${want[*]}" >&2; local t0=$SECONDS
    mkdir -p "$KUBE_BIN/.new"
    nice -n 10 go build -trimpath -tags notest,grpcnotrace -ldflags "$ld" -o "$KUBE_BIN/.new/" "${pkgs[@]}"
    mv "$KUBE_BIN"/.new/* "$KUBE_BIN/"; rmdir "$KUBE_BIN/.new"; echo "  $((SECONDS-t0)) s" >&2
    cd /
  fi
  if [ "$KUBE_STORE" = kine ] && [ ! -x "$KUBE_BIN/kine" ]; then     # cgo (sqlite): needs gcc
    GOFLAGS= CGO_ENABLED=1 GOBIN=$KUBE_BIN nice -n 10 go install -trimpath -ldflags "-s -w" github.com/k3s-io/kine@v$KINE; fi
}

pki() {
  local d=$KUBE_DIR/pki; mkdir -p "$d"; cd "$d"
  openssl ecparam -name prime256v1 -genkey -noout -out ca.key
  openssl req -x509 -new -key ca.key -subj /CN=bfinfra-peers-ca -days 30 -out ca.crt 2>/dev/null
  leaf() { # name subject extensions
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile <(printf '%b' "$3") -out "$1.crt" 2>/dev/null
  }
  leaf apiserver /CN=kube-apiserver 'extendedKeyUsage=serverAuth\nsubjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1\n'
  leaf admin '/O=system:masters/CN=kube-admin' 'extendedKeyUsage=clientAuth\n'
  leaf kcm '/CN=system:kube-controller-manager' 'extendedKeyUsage=clientAuth\n'
  leaf scheduler '/CN=system:kube-scheduler' 'extendedKeyUsage=clientAuth\n'
  openssl genrsa -out sa.key 2048 2>/dev/null; openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
  # token,user,uid,groups : an administrator, and a user without any right (for RBAC tests)
  ADMIN_TOKEN=$(openssl rand -hex 16); NOBODY_TOKEN=$(openssl rand -hex 16)
  printf '%s,token-admin,u1,"system:masters"\n%s,token-nobody,u2,"testers"\n' "$ADMIN_TOKEN" "$NOBODY_TOKEN" > tokens.csv
}
kubeconfig() { # file user-json
  cat > "$1" <<J
{"apiVersion":"v1","kind":"Config","current-context":"up",
 "clusters":[{"name":"up","cluster":{"server":"https://127.0.0.1:$KUBE_PORT","certificate-authority":"$KUBE_DIR/pki/ca.crt"}}],
 "users":[{"name":"u","user":$2}],"contexts":[{"name":"up","context":{"cluster":"up","user":"u","namespace":"default"}}]}
J
}
certuser() { echo "{\"client-certificate\":\"$KUBE_DIR/pki/$1.crt\",\"client-key\":\"$KUBE_DIR/pki/$1.key\"}"; }

spawn() { # name command...
  local n=$1; shift
  setsid "$@" > "$KUBE_DIR/log/$n.log" 2>&1 < /dev/null & local pid=$!
  echo "$pid $(started "$pid")" > "$KUBE_DIR/pid/$n"
}
# a pid alone may be reused by somebody else's process: the kernel's start time goes with it
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
mypid() { local p t; [ -f "$KUBE_DIR/pid/$1" ] || return 1; read -r p t < "$KUBE_DIR/pid/$1" || return 1; [ -n "$t" ] && [ "$(started "$p")" = "$t" ] && echo "$p"; }
alive() { mypid "$1" > /dev/null; }
ready() { # name url seconds
  local end=$((SECONDS+$3))
  until curl -fsS --cacert "$KUBE_DIR/pki/ca.crt" --cert "$KUBE_DIR/pki/admin.crt" --key "$KUBE_DIR/pki/admin.key" -o /dev/null "$2" 2>/dev/null; do
    alive "$1" || { echo "$1 died:" >&2; tail -15 "$KUBE_DIR/log/$1.log" >&2; return 1; }
    [ $SECONDS -lt $end ] || { echo "$1 not ready in $3 s" >&2; tail -15 "$KUBE_DIR/log/$1.log" >&2; return 1; }
    sleep 0.1
  done
}

up() {
  build
  if alive kube-apiserver; then echo "already up: $KUBE_DIR" >&2; echo "export KUBECONFIG=$KUBE_DIR/admin.kubeconfig"; return; fi
  umask 077
  rm -rf "$KUBE_DIR"; mkdir -p "$KUBE_DIR"/{log,pid,etcd}
  pki
  [ "$KUBE_PORT" != 0 ] || KUBE_PORT=$(freeport)
  local ec ep; ec=$(freeport); ep=$(freeport)
  if [ "$KUBE_STORE" = kine ]; then
    spawn etcd "$KUBE_BIN/kine" --endpoint "sqlite://$KUBE_DIR/etcd/kine.db?_journal=WAL&_synchronous=OFF&cache=shared&_busy_timeout=30000" \
      --listen-address "http://127.0.0.1:$ec" --metrics-bind-address 0
    until (exec 3<>/dev/tcp/127.0.0.1/$ec) 2>/dev/null; do alive etcd || { cat "$KUBE_DIR/log/etcd.log"; exit 1; }; sleep 0.05; done
  else
    spawn etcd "$KUBE_BIN/etcd" --name up --data-dir "$KUBE_DIR/etcd" --unsafe-no-fsync --log-level warn \
      --listen-client-urls "http://127.0.0.1:$ec" --advertise-client-urls "http://127.0.0.1:$ec" \
      --listen-peer-urls "http://127.0.0.1:$ep" --initial-advertise-peer-urls "http://127.0.0.1:$ep" --initial-cluster "up=http://127.0.0.1:$ep"
    ready etcd "http://127.0.0.1:$ec/health" 20
    echo "http://127.0.0.1:$ec" > "$KUBE_DIR/etcd.url"
  fi
  local p=$KUBE_DIR/pki
  spawn kube-apiserver "$KUBE_BIN/kube-apiserver" --etcd-servers "http://127.0.0.1:$ec" \
    --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$KUBE_PORT" --endpoint-reconciler-type none \
    --tls-cert-file "$p/apiserver.crt" --tls-private-key-file "$p/apiserver.key" --client-ca-file "$p/ca.crt" \
    --token-auth-file "$p/tokens.csv" --anonymous-auth=false --authorization-mode RBAC --allow-privileged \
    --service-cluster-ip-range 10.96.0.0/16 --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$p/sa.pub" --service-account-signing-key-file "$p/sa.key" \
    --profiling=false ${KUBE_APISERVER_ARGS:-}
  kubeconfig "$KUBE_DIR/admin.kubeconfig" "$(certuser admin)"
  kubeconfig "$KUBE_DIR/token.kubeconfig" "{\"token\":\"$ADMIN_TOKEN\"}"
  kubeconfig "$KUBE_DIR/nobody.kubeconfig" "{\"token\":\"$NOBODY_TOKEN\"}"
  kubeconfig "$KUBE_DIR/kcm.kubeconfig" "$(certuser kcm)"
  kubeconfig "$KUBE_DIR/scheduler.kubeconfig" "$(certuser scheduler)"
  ready kube-apiserver "https://127.0.0.1:$KUBE_PORT/readyz" 60
  if has kcm; then
    spawn kube-controller-manager "$KUBE_BIN/kube-controller-manager" --kubeconfig "$KUBE_DIR/kcm.kubeconfig" --leader-elect=false \
      --secure-port 0 --use-service-account-credentials --service-account-private-key-file "$p/sa.key" --root-ca-file "$p/ca.crt" \
      --cluster-signing-cert-file "$p/ca.crt" --cluster-signing-key-file "$p/ca.key" --profiling=false --kube-api-qps 500 --kube-api-burst 1000
    # pods and operators need the default service account
    ready kube-controller-manager "https://127.0.0.1:$KUBE_PORT/api/v1/namespaces/default/serviceaccounts/default" 30
  fi
  if has scheduler; then
    spawn kube-scheduler "$KUBE_BIN/kube-scheduler" --kubeconfig "$KUBE_DIR/scheduler.kubeconfig" --leader-elect=false --secure-port 0 --profiling=false
  fi
  if has kwok; then
    # kwok refuses to start without Stages; its own module carries the "fast" ones (node Ready, pod Running/Completed/deleted); pods of the operator's Jobs are run by tests/peers/jobs.py, which says when they end
    local kd; kd=$(cd / && go mod download -json sigs.k8s.io/kwok@v$KWOK | python3 -c 'import json,sys;print(json.load(sys.stdin)["Dir"])')/kustomize/stage
    cat "$kd"/node/fast/node-initialize.yaml <(echo ---) "$kd"/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml <(echo ---) \
        "$kd"/pod/fast/pod-ready.yaml <(echo ---) <(sed "s/^    matchExpressions:/&\n    - {key: '.metadata.namespace | select(startswith(\"operator-t\"))', operator: DoesNotExist}/" "$kd"/pod/fast/pod-complete.yaml) \
        <(echo ---) "$kd"/pod/fast/pod-delete.yaml > "$KUBE_DIR/kwok-stages.yaml"
    spawn kwok "$KUBE_BIN/kwok" --kubeconfig "$KUBE_DIR/admin.kubeconfig" --config "$KUBE_DIR/kwok-stages.yaml" \
      --manage-all-nodes --node-lease-duration-seconds 40 --server-address "127.0.0.1:$(freeport)"
    for i in $(seq "$KUBE_NODES"); do
      printf '{"apiVersion":"v1","kind":"Node","metadata":{"name":"fake-%s","labels":{"kubernetes.io/hostname":"fake-%s","kubernetes.io/os":"linux"}},"status":{"allocatable":{"cpu":"32","memory":"256Gi","pods":"110"},"capacity":{"cpu":"32","memory":"256Gi","pods":"110"}}}\n' "$i" "$i"
    done | "$KUBE_BIN/kubectl" --kubeconfig "$KUBE_DIR/admin.kubeconfig" create -f - >&2
    "$KUBE_BIN/kubectl" --kubeconfig "$KUBE_DIR/admin.kubeconfig" wait --for=condition=Ready node --all --timeout=20s >&2
  fi
  echo "export KUBECONFIG=$KUBE_DIR/admin.kubeconfig"
}

down() {   # throw-away data, so SIGKILL: a graceful stop costs 5-10 s (kwok, controller-manager, apiserver drain)
  local n pid
  for n in kwok kube-scheduler kube-controller-manager kube-apiserver etcd; do
    if pid=$(mypid "$n"); then kill -9 "$pid" 2>/dev/null || true; fi
  done
  for n in kwok kube-scheduler kube-controller-manager kube-apiserver etcd; do
    for _ in $(seq 100); do alive "$n" || break; sleep 0.05; done
  done
  [ ! -d "$KUBE_DIR/pid" ] || rm -rf "$KUBE_DIR"
}

status() {
  local f n pid
  for f in "$KUBE_DIR"/pid/*; do
    [ -f "$f" ] || { echo "not up: $KUBE_DIR"; return 1; }
    n=${f##*/}; pid=$(mypid "$n" || echo dead); printf '%-26s pid %-7s %s\n' "$n" "$pid" "$(awk '/^VmRSS/{r=$2}/^VmHWM/{h=$2}END{printf "RSS %d MiB, peak %d MiB",r/1024,h/1024}' /proc/$pid/status 2>/dev/null || echo dead)"
  done
  "$KUBE_BIN/kubectl" --kubeconfig "$KUBE_DIR/admin.kubeconfig" get --raw /readyz; echo
}

case "${1:-}" in build) build;; up) up;; down) down;; reset) down; up;; status) status;; *) sed -n 2,18p "$0"; exit 2;; esac; exit

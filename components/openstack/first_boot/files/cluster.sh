#!/usr/bin/env bash
# The kind cluster on the volume, and its kubeconfig for the user.
#
# A cluster that came with the volume stays, for its pods' data goes with it, unless it has another image or port, which
# no node can change. One that this step began and did not finish is made anew: nobody was told of it yet.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

settings=/etc/mlbatch/kind.yaml
progress=$MOUNT/.mlbatch/kind
node=$KIND_NAME-control-plane
wanted="$NODE_IMAGE $API_PORT"

fetch "$KIND_URL" /usr/local/bin/kind "$KIND_SHA256"
chmod 0755 /usr/local/bin/kind
# Pods watch many files (kind.sigs.k8s.io/docs/user/known-issues, "Pod errors due to too many open files").
printf 'fs.inotify.max_user_watches = 1048576\nfs.inotify.max_user_instances = 512\n' | replace /etc/sysctl.d/90-kind.conf
sysctl --quiet --load /etc/sysctl.d/90-kind.conf

# Where Docker does not answer, the step ends here: it must not take that for a cluster that is not there.
nodes=$(docker ps --all --format '{{.Names}}')
noted=$(cat "$progress" 2>/dev/null || true)
if ! grep --quiet --line-regexp "$node" <<<"$nodes"; then
  action=create
elif [[ $noted == "begun "* || ($noted != "finished $wanted" && -n $KIND_RECREATE) ]]; then
  kind delete cluster --name "$KIND_NAME"
  action=create
elif [[ $noted == "finished $wanted" ]]; then
  action=start
else
  noted=${noted#finished }
  refuse "the cluster '$KIND_NAME' on the volume has the node and port '${noted:-which nobody noted}', and the settings" \
    "ask for '$wanted'. It holds its pods' data: go back to the settings that it was made with; or save the data," \
    "remove the cluster with 'kind delete cluster --name $KIND_NAME', and boot again"
fi
if [[ $action == create ]]; then
  replace "$progress" <<<"begun $wanted"
  kind create cluster --name "$KIND_NAME" --config "$settings" --wait 5m --kubeconfig "$STATE/kind.kubeconfig"
  # kind's own policy leaves the node stopped after a boot.
  docker update --restart=unless-stopped "$node"
  replace "$progress" <<<"finished $wanted"
else
  docker start "$node"
fi
if [[ -n ${CUDA_VERSION:-} ]]; then
  gpus=$(docker exec "$node" nvidia-smi -L 2>&1) ||
    refuse "kind's node sees no GPU of this VM, so that none of its pods would: ${gpus##*$'\n'}. A node that was made" \
      "before the first boot gave all of them the same runtime has to be made anew: save the data, remove the cluster" \
      "with 'kind delete cluster --name $KIND_NAME', and boot again"
  record checks gpus-in-cluster "$gpus"
fi
# Nodes have the kubectl of their own Kubernetes (kubernetes-sigs/kind, pkg/build/nodeimage/buildcontext.go).
docker cp "$node:/usr/bin/kubectl" /usr/local/bin/kubectl.part
mv /usr/local/bin/kubectl.part /usr/local/bin/kubectl

(umask 077 && kind get kubeconfig --name "$KIND_NAME" >"$STATE/kind.kubeconfig")
within "$API_SECONDS" kubectl --kubeconfig "$STATE/kind.kubeconfig" get --raw /readyz
install --mode=0600 --owner="$USER_NAME" "$STATE/kind.kubeconfig" /var/lib/mlbatch/kubeconfig.part
mv /var/lib/mlbatch/kubeconfig.part /var/lib/mlbatch/kubeconfig
rm -f "$STATE/kind.kubeconfig"
record versions kind "$(kind version)"
record versions kubernetes "$(kubectl --kubeconfig /var/lib/mlbatch/kubeconfig version --output json |
  jq --raw-output .serverVersion.gitVersion)"

#!/usr/bin/env bash
# A registry beside the cluster, which its node knows as 127.0.0.1:5001 (kind.sigs.k8s.io/docs/user/local-registry).
# Tools are told of it by what is installed in the cluster.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

name=kind-registry
hosts=/etc/containerd/certs.d/127.0.0.1:5001

names=$(docker ps --all --format '{{.Names}}')
if ! grep --quiet --line-regexp "$name" <<<"$names"; then
  docker create --restart=always --publish 127.0.0.1:5001:5000 --name "$name" "$REGISTRY_IMAGE"
fi
if ! docker inspect --format '{{json .NetworkSettings.Networks}}' "$name" | jq --exit-status .kind >/dev/null; then
  docker network connect kind "$name"
fi
docker start "$name"
docker exec "$KIND_NAME-control-plane" mkdir -p "$hosts"
docker exec --interactive "$KIND_NAME-control-plane" tee "$hosts/hosts.toml" <<<"[host.\"http://$name:5000\"]" >/dev/null

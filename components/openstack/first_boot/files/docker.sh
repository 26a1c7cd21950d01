#!/usr/bin/env bash
# Docker Engine, from Docker's own packages, for the user without sudo.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC1091 # of the system
. /etc/os-release
system="~ubuntu.$VERSION_ID~$VERSION_CODENAME"
names=(docker-ce docker-ce-cli containerd.io docker-buildx-plugin docker-compose-plugin)
versions=("5:$DOCKER_VERSION" "5:$DOCKER_VERSION" "$CONTAINERD_VERSION" "$BUILDX_VERSION" "$COMPOSE_VERSION")
pinned=()
for index in "${!names[@]}"; do pinned+=("${names[index]}=${versions[index]}$system"); done

# Containers do not reach the metadata service, which tells this machine's host key to whoever asks.
printf '[Service]\nExecStartPost=%s/guard-metadata.sh\n' "$(dirname "$0")" |
  replace /etc/systemd/system/docker.service.d/20-metadata.conf
repository docker "$DOCKER_KEY_URL" "$DOCKER_KEY" "https://download.docker.com/linux/ubuntu $VERSION_CODENAME stable"
packages install --allow-downgrades --allow-change-held-packages "${pinned[@]}"
apt-mark hold "${names[@]}"
usermod --append --groups docker "$USER_NAME"
systemctl daemon-reload
systemctl enable docker.service
systemctl restart docker.service

root=$(docker info --format '{{.DockerRootDir}}')
[[ $root == "$MOUNT/docker" ]] || refuse "Docker keeps its data at $root, not on the volume"
record versions docker "$(docker version --format '{{.Server.Version}}')"

#!/usr/bin/env bash
# NVIDIA's container toolkit, its runtime as Docker's default, and GPUs asked for by volume mounts, as kind's node does.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

names=(nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1)
repository nvidia-container-toolkit "$TOOLKIT_KEY_URL" "$TOOLKIT_KEY" \
  "https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /"
packages install --allow-downgrades --allow-change-held-packages "${names[@]/%/=$TOOLKIT_VERSION}"
apt-mark hold "${names[@]}"
nvidia-ctk runtime configure --runtime=docker --set-as-default
nvidia-ctk config --in-place --set accept-nvidia-visible-devices-as-volume-mounts=true
systemctl restart docker.service
runtime=$(docker info --format '{{json .}}' | jq --raw-output '.Runtimes[.DefaultRuntime].path')
[[ ${runtime##*/} == nvidia-container-runtime ]] || refuse "Docker's default runtime is $runtime, not NVIDIA's"
record versions nvidia-container-toolkit "$(dpkg-query --show --showformat '${Version}' nvidia-container-toolkit)"

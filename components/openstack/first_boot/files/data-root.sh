#!/usr/bin/env bash
# Has Docker keep its data on the volume, and fit the network; what it kept elsewhere is copied there first.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

settings=/etc/docker/daemon.json
root=$MOUNT/docker
[[ -s $settings ]] || replace "$settings" <<<'{}'
old=$(jq --raw-output '."data-root" // "/var/lib/docker"' "$settings")

if [[ $old != "$root" && ! -e $root && -d $old && -n $(ls -A "$old") ]]; then
  for unit in docker.service docker.socket containerd.service; do
    if systemctl is-active --quiet "$unit"; then systemctl stop "$unit"; fi
  done
  # Attributes too: layers keep there what they hide of the ones below.
  rsync --archive --hard-links --acls --xattrs --sparse --numeric-ids --one-file-system --delete "$old/" "$root.part/"
  sync
  mv "$root.part" "$root"
fi
mkdir -p "$root"

# Docker takes 1500 for granted, and a project's network in a tunnel has less: large packets of containers would be lost
# (moby/moby, issue 22028). kind's network is as the default one.
device=$(ip -json route show default | jq --raw-output '.[0].dev')
mtu=$(ip -json link show dev "$device" | jq '.[0].mtu')

# Images belong to the data root: with the other store containerd would have them on the system's disk.
#
# A container keeps the name of the runtime that was the default one when it was made (moby/moby, daemon/daemon_unix.go,
# verifyPlatformContainerSettings), and kind's node outlives VMs. So the name is the same on all: NVIDIA's runtime where
# its toolkit is installed, runc elsewhere.
jq --arg root "$root" --argjson mtu "$mtu" '. + {"data-root": $root, mtu: $mtu, "default-runtime": "nvidia"}
  | .features["containerd-snapshotter"] = false
  | .runtimes.nvidia //= {path: "runc"}' "$settings" |
  replace "$settings"

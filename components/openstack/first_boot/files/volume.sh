#!/usr/bin/env bash
# Finds the volume by its serial, formats it only where nothing was ever written to it, and mounts it by its UUID.
#
# A volume that moves here from another VM has our filesystem, and is mounted as it is. All else that is not empty is
# refused, and nothing is written to it.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

label=mlbatch
disk=/dev/disk/by-id/virtio-$VOLUME_SERIAL
intent=$STATE/volume.uuid

# tag NAME: of what is on the disk; nothing where there is nothing, or what cannot be told.
tag() {
  blkid --probe --match-tag "$1" --output value "$disk" || true
}

# Three questions, for blkid and wipefs know signatures alone, and the start of an encrypted disk has none.
empty() {
  local signatures code=0
  blkid --probe "$disk" >/dev/null || code=$?
  ((code == 2)) || return 1 # blkid(8): nothing was found
  signatures=$(wipefs "$disk") || return 1
  [[ -z $signatures ]] && cmp --silent --bytes=$((16 * 1024 * 1024)) "$disk" /dev/zero
}

# mkfs.xfs sets the flag in the first block that it writes, and clears it in the last.
unfinished() {
  [[ -f $intent && $(tag UUID) == "$(cat "$intent")" ]] &&
    [[ $(xfs_db -r -c 'sb 0' -c 'print inprogress' "$disk") == "inprogress = 1" ]]
}

# What the oldest kernel mounts that a VM of this volume may have, 5.15 of Ubuntu 22.04: older tools know neither, and
# enable nothing else; those of Debian 12 have a file that they do not understand themselves.
features=()
choose_features() {
  if mkfs.xfs -N -f -c "options=$XFS_FEATURES" "$disk"; then
    features=(-c "options=$XFS_FEATURES")
  elif mkfs.xfs -N -f -i nrext64=0 "$disk"; then
    features=(-i nrext64=0)
  fi >/dev/null 2>&1 # mkfs.xfs(8): nothing is written with -N
}

# Under a UUID that is noted first, by which a filesystem is known that a power cut left unfinished.
format() {
  choose_features
  replace "$intent" </proc/sys/kernel/random/uuid
  mkfs.xfs -q -L "$label" "${features[@]}" -m "uuid=$(cat "$intent")" "$@" "$disk"
  sync
}

within "$VOLUME_SECONDS" test -e "$disk" || {
  echo "no disk with the serial $VOLUME_SERIAL within $VOLUME_SECONDS s: is the volume attached?" >&2
  exit 1
}
if [[ $(tag TYPE) == xfs && $(tag LABEL) == "$label" ]]; then
  if unfinished; then format -f; fi
elif empty; then
  format
else
  refuse "the volume $VOLUME_SERIAL is not empty and has no filesystem 'xfs' labelled '$label' ($(wipefs "$disk" |
    awk 'NR > 1 { print $NF }' | sort -u | paste -sd, -)): nothing was written to it. Attach an empty volume; or," \
    "if this one is yours and has an xfs filesystem, label it: xfs_admin -L $label $disk"
fi

uuid=$(tag UUID)
{
  awk -v mount="$MOUNT" '$2 != mount' /etc/fstab
  echo "UUID=$uuid $MOUNT xfs defaults,nofail,x-systemd.device-timeout=60s 0 2"
} | replace /etc/fstab
# Docker never starts with an empty root because the volume is missing, and at each start the filesystem takes what the
# volume has become.
printf '[Unit]\nRequiresMountsFor=%s\n[Service]\nExecStartPre=-/usr/sbin/xfs_growfs %s\n' "$MOUNT" "$MOUNT" |
  replace /etc/systemd/system/docker.service.d/10-volume.conf
systemctl daemon-reload
mkdir -p "$MOUNT"
mountpoint --quiet "$MOUNT" || mount "$MOUNT"
[[ $(findmnt --noheadings --output UUID "$MOUNT") == "$uuid" ]] || refuse "another filesystem is mounted at $MOUNT"
chown "$USER_NAME:" "$MOUNT"

#!/usr/bin/env bash
# Boots once more for the driver, and has it answer then.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

asked=$STATE/reboot.boot-id
boot=$(cat /proc/sys/kernel/random/boot_id)
[[ -f $asked ]] || { echo "$boot" | replace "$asked"; }
[[ $(cat "$asked") != "$boot" ]] || exit "$REBOOT"

found=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort -u)
[[ $found == "$DRIVER_VERSION".* ]] || refuse "the driver that answers is '$found', not $DRIVER_VERSION"
record versions nvidia-driver "$found"

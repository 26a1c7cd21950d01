#!/usr/bin/env bash
# Brings the system up to date, and installs what the other steps call.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

packages update
# A new kernel is a new package, which `apt upgrade` takes and `apt-get upgrade` by itself does not.
packages upgrade --with-new-pkgs
packages install ca-certificates curl gnupg iproute2 iptables jq pciutils rsync util-linux xfsprogs
# shellcheck disable=SC1091 # of the system
record versions ubuntu "$(. /etc/os-release && echo "$VERSION_ID")"
# What runs is what was upgraded: kernel, libraries and services.
[[ ! -e /run/reboot-required ]] || exit "$REBOOT"

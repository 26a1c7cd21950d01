#!/usr/bin/env bash
# Brings the system up to date, and installs what the other steps call.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

packages update
packages upgrade
packages install ca-certificates curl gnupg iptables jq pciutils rsync util-linux xfsprogs
# shellcheck disable=SC1091 # of the system
record versions ubuntu "$(. /etc/os-release && echo "$VERSION_ID")"

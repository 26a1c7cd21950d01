#!/usr/bin/env bash
# NVIDIA's driver, from Ubuntu's own archive; it works from the next boot on.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

[[ -n $(lspci -d 10de:) ]] || refuse "this machine has no NVIDIA device: is its flavor one with a GPU?"
# Without headers no module is built, and packages say nothing of it. After the upgrade another kernel may come up.
packages install "linux-headers-$(uname -r)" linux-headers-generic
packages install "nvidia-driver-$DRIVER_VERSION-server=$DRIVER_VERSION.*"
apt-mark hold "nvidia-driver-$DRIVER_VERSION-server"

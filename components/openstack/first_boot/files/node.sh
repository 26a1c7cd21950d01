#!/usr/bin/env bash
# Gives the cluster's node Ubuntu's second name of ldconfig, which it lacks as a Debian: the toolkit of NVIDIA's GPU
# operator writes that name into its settings where its own container has it, as an Ubuntu
# (NVIDIA/nvidia-container-toolkit, internal/config/cli.go, NormalizeLDConfigPath).
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

real=/sbin/ldconfig.real
# On an Ubuntu /sbin/ldconfig is a program that calls the other one.
docker exec "$KIND_NAME-control-plane" sh -c "test -e $real || ln -s /sbin/ldconfig $real"

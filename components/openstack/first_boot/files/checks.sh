#!/usr/bin/env bash
# The checks of the installation guides, as the user; what they print is kept.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

# check NAME PATTERN COMMAND...: its output has to match.
check() {
  local name=$1 pattern=$2 output
  shift 2
  output=$(runuser --user "$USER_NAME" -- env "HOME=/home/$USER_NAME" "$@" 2>&1) ||
    { echo "$name failed: $(tail -n 3 <<<"$output")" >&2; return 1; }
  grep --quiet "$pattern" <<<"$output" || { echo "$name does not say '$pattern'" >&2; return 1; }
  record checks "$name" "$(grep "$pattern" <<<"$output" | tail -n 1)"
}

check hello-world 'Hello from Docker' docker run --rm "$HELLO_WORLD"
if [[ -n ${CUDA_VERSION:-} ]]; then
  check nvidia-smi 'Driver Version' nvidia-smi
  check nvcc "release $CUDA_VERSION" "/usr/local/cuda-$CUDA_VERSION/bin/nvcc" --version
  check nbody 'GFLOP/s' docker run --rm --gpus=all "$NBODY" nbody -gpu -benchmark
fi

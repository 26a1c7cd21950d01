#!/usr/bin/env bash
# CUDA's toolkit, from NVIDIA's repository, without the drivers that it has too.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC1091 # of the system
. /etc/os-release
[[ " $CUDA_UBUNTU " == *" $VERSION_ID "* ]] ||
  refuse "CUDA $CUDA_VERSION is packaged for Ubuntu $CUDA_UBUNTU, and this is $VERSION_ID"
repository cuda "$CUDA_KEY_URL" "$CUDA_KEY" "$CUDA_REPOSITORY${VERSION_ID/./}/x86_64 /"
packages install "cuda-toolkit-${CUDA_VERSION/./-}=$CUDA_PACKAGE"
# No later upgrade takes a driver from there.
rm /etc/apt/sources.list.d/cuda.list

replace /etc/profile.d/cuda.sh <<PROFILE
export PATH=/usr/local/cuda-$CUDA_VERSION/bin:\$PATH
export LD_LIBRARY_PATH=/usr/local/cuda-$CUDA_VERSION/lib64\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
PROFILE
record versions cuda "$("/usr/local/cuda-$CUDA_VERSION/bin/nvcc" --version | sed -n 's/.*, V//p')"

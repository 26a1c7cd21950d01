#!/usr/bin/env bash
# CUDA's toolkit, without the driver that comes in the same repository and is older than the installed one.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC1091 # of the system
. /etc/os-release
[[ $VERSION_ID == 22.04 ]] || refuse "CUDA $CUDA_VERSION is packaged for Ubuntu 22.04, and this is $VERSION_ID"
repository=cuda-repo-ubuntu2204-${CUDA_VERSION/./-}-local
installer=/var/tmp/$repository.deb

fetch "$CUDA_PIN_URL" /etc/apt/preferences.d/cuda-repository-pin-600 "$CUDA_PIN_SHA256"
fetch "$CUDA_URL" "$installer" "$CUDA_SHA256"
packages install "$installer"
cp "/var/$repository/"cuda-*-keyring.gpg /usr/share/keyrings/
packages update
packages install "cuda-toolkit-${CUDA_VERSION/./-}"
# 6 GB of a system disk of 80.
packages purge "$repository"
rm -f "$installer"

replace /etc/profile.d/cuda.sh <<PROFILE
export PATH=/usr/local/cuda-$CUDA_VERSION/bin:\$PATH
export LD_LIBRARY_PATH=/usr/local/cuda-$CUDA_VERSION/lib64\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
PROFILE
record versions cuda "$("/usr/local/cuda-$CUDA_VERSION/bin/nvcc" --version | sed -n 's/.*, V//p')"

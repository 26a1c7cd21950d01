#!/bin/sh
# Prints the credential of a cluster whose API server listens on a VM's loopback, and sees to the SSH tunnel to it.
#
# Clients of Kubernetes run it before their first request, and again once the credential has expired
# (client.authentication.k8s.io/v1). An open tunnel is used again; it closes after ten minutes without a connection.
set -eu
umask 077

# What opens a tunnel lives on, and needs no credential of the cluster in its environment.
credential=$CREDENTIAL
unset CREDENTIAL

key=${MLBATCH_SSH_KEY:-$KEY_FILE}
# shellcheck disable=SC2088 # it is expanded here
case $key in "~/"*) key=$HOME/${key#"~/"} ;; esac
# The socket has to lie where nobody else of this machine gets to.
folder=$HOME/.ssh
mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] || folder=${XDG_RUNTIME_DIR:-}
[ -w "$folder" ] || {
  echo "no place for the SSH tunnel's socket: neither $HOME/.ssh nor \$XDG_RUNTIME_DIR can be written" >&2
  exit 1
}
socket=$folder/mlbatch-$LOCAL_PORT

is_open() {
  checked=$(ssh -S "$socket" -O check "$USER_NAME@$ADDRESS" 2>&1)
}

# Somebody else of this machine may have it open. Their tunnel does as well: the API server is known by its certificate.
is_anothers() {
  grep -q 'Address already in use' "$errors"
}

if ! is_open; then
  # A tunnel that was killed leaves its socket, beside which ssh makes no other one: the next tunnel would never close.
  # Where there was none, another run of this may have made one by now.
  case $checked in *"Connection refused"*) rm -f "$socket" ;; esac
  known=$(mktemp)
  errors=$(mktemp)
  trap 'rm -f "$known" "$errors"' EXIT
  echo "mlbatch-vm $HOST_KEY" >"$known"
  # Nothing of ours stays open in the background, or clients would wait for the end of what is printed here.
  # Another run of this may have been faster.
  ssh -f -N -M -S "$socket" -i "$key" -p "$PORT" -L "127.0.0.1:$LOCAL_PORT:127.0.0.1:$API_PORT" \
    -o BatchMode=yes -o ConnectTimeout=20 -o ControlPersist=600 -o ExitOnForwardFailure=yes \
    -o ForwardAgent=no -o GlobalKnownHostsFile=/dev/null -o HostKeyAlias=mlbatch-vm -o IdentitiesOnly=yes \
    -o ServerAliveCountMax=3 -o ServerAliveInterval=15 -o StrictHostKeyChecking=yes -o UserKnownHostsFile="$known" \
    "$USER_NAME@$ADDRESS" </dev/null >/dev/null 2>"$errors" || is_open || is_anothers || {
    echo "no SSH tunnel to $USER_NAME@$ADDRESS with the key $key (another one: \$MLBATCH_SSH_KEY):" >&2
    cat "$errors" >&2
    grep -q -e 'Permission denied' -e 'Host key verification' "$errors" || {
      echo "An update that failed while it replaced the VM goes on with \`pulumi up --refresh=false\`, which does not look" >&2
      echo "at the cluster first; for a VM that is gone or does not start see docs/cpouta.md" >&2
    }
    exit 1
  }
fi

# An early end has clients run this again, should the tunnel be gone by then.
expiry=$(date -u -d '+60 seconds' '+%Y-%m-%dT%H:%M:%SZ' 2>/dev/null || date -u -v+60S '+%Y-%m-%dT%H:%M:%SZ')
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": %s}\n' \
  "{\"expirationTimestamp\": \"$expiry\", $credential}"

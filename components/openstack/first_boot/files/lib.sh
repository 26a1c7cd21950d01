# shellcheck shell=bash
# What the steps of the first boot share. The runner tells them their settings by environment variables.

set -euo pipefail
# needrestart would restart the unit that these steps are of, with apt at work in it (needrestart(1)).
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

# Ends a step that no other attempt would help.
refuse() {
  echo "$*" >&2
  exit "$REFUSED"
}

# record versions|checks NAME TEXT: goes into the marker.
record() {
  mkdir -p "$RESULTS/$1"
  printf '%s\n' "$3" >"$RESULTS/$1/$2"
}

# Replaces FILE by what comes in, whole or not at all, and for good: its folder has the name only once it is written, too.
replace() {
  local folder
  folder=$(dirname "$1")
  mkdir -p "$folder"
  cat >"$1.part"
  sync "$1.part"
  mv "$1.part" "$1"
  sync "$folder"
}

# within SECONDS COMMAND...: until it succeeds.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep "$PAUSE"
  done
}

# apt-get that asks nothing, keeps changed configuration, and first ends what a power cut interrupted. The system's own
# upgrade may be at work for minutes.
packages() {
  within 600 dpkg --configure -a --force-confdef --force-confold
  apt-get --yes --no-install-recommends -o DPkg::Lock::Timeout=600 \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"
}

# download URL FILE.part: what nobody has looked at yet.
download() {
  mkdir -p "$(dirname "$2")"
  curl --fail --silent --show-error --location --proto '=https' --connect-timeout 20 \
    --retry 5 --retry-delay 5 --output "$2" "$1"
}

# fetch URL FILE SHA256: never without a digest, for root runs it.
fetch() {
  [[ $3 =~ ^[0-9a-f]{64}$ ]] || refuse "$1 has no digest in the catalogue, and root would run it"
  download "$1" "$2.part"
  if ! sha256sum --check --status <<<"$3  $2.part"; then
    rm "$2.part"
    refuse "$1 has not the digest sha256:$3"
  fi
  mv "$2.part" "$2"
}

# repository NAME KEY-URL FINGERPRINT "ADDRESS...": a source of packages, signed by that key alone.
repository() {
  local key=/etc/apt/keyrings/$1.asc found
  download "$2" "$key.part"
  found=$(gpg --show-keys --with-colons "$key.part" | awk -F: '$1 == "fpr" && !seen++ { print $10 }')
  if [[ $found != "$3" ]]; then
    rm "$key.part"
    refuse "the key at $2 has the fingerprint '$found', not $3"
  fi
  chmod 0644 "$key.part"
  mv "$key.part" "$key"
  echo "deb [arch=amd64 signed-by=$key] $4" | replace "/etc/apt/sources.list.d/$1.list"
  packages update
}

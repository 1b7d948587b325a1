# SPDX-License-Identifier: Apache-2.0
# Shared by scripts/run and scripts/test: installs missing packages, configures and builds a preset.
# Messages go to stderr; stdout belongs to the program that is run.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 3; }

# packages [test|bundle|cuda12]: prints the names in scripts/packages.txt, those with a mark only if it is given.
packages() {
  sed -e "/\[[a-z0-9]*\]/{/\[${1:-none}\]/!d}" -e 's/#.*//' -e '/^[[:space:]]*$/d' -e 's/[[:space:]]//g' \
    "$root/scripts/packages.txt"
}

missing_packages() {
  local name
  for name in $(packages "$1"); do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || echo "$name"
  done
}

# known_packages NAME...: prints those that apt knows. Ubuntu has no package of some of Debian's names.
known_packages() {
  local name
  for name in "$@"; do
    if apt-cache show "$name" >/dev/null 2>&1; then echo "$name"; else say "apt does not know $name; going on without it"; fi
  done
}

install_missing() {
  if ! command -v dpkg-query apt-get >/dev/null; then
    say "This is not a Debian or Ubuntu system: please install the equivalents of scripts/packages.txt yourself."
    return
  fi
  local names as_root=()
  names=$(missing_packages "${1:-}" | tr '\n' ' ')
  [ -n "${names// /}" ] || return 0
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  say "Installing with apt: $names"
  "${as_root[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with the lists that are here"
  # shellcheck disable=SC2086
  names=$(known_packages $names | tr '\n' ' ')
  # shellcheck disable=SC2086
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $names >&2 ||
    die "Could not install: $names. Install them by hand, then add --no-install."
}

# Prints the progress of a build from its log every 30 s, until the calling shell exits.
tell_progress() {
  local seconds=0
  while sleep 1 && kill -0 $$ 2>/dev/null; do
    ((++seconds % 30)) || say "  $(grep -o '^\[[0-9]*/[0-9]*\]' "$1" | tail -n 1) of the build after $seconds s"
  done
}

# build PRESET TARGET [cmake argument...]: prints progress only, unless it fails or stderr is a terminal.
build() {
  local preset=$1 target=$2 log="$root/build/$1.log" watcher built
  mkdir -p "$root/build"
  say "Building preset $preset in build/$preset (log: build/$preset.log)"
  (cd "$root" && cmake --preset "$preset" "${@:3}") >"$log" 2>&1 ||
    { tail -n 30 "$log" >&2; die "Configuring failed; the whole log is $log"; }
  if [ -t 2 ]; then
    (cd "$root" && cmake --build --preset "$preset" --target "$target") 2>&1 | tee -a "$log" >&2
    built=${PIPESTATUS[0]}
  else
    tell_progress "$log" &
    watcher=$!
    (cd "$root" && cmake --build --preset "$preset" --target "$target") >>"$log" 2>&1
    built=$?
    kill "$watcher" 2>/dev/null
  fi
  [ "$built" = 0 ] || { grep -E -A5 'error|FAILED' "$log" | head -n 60 >&2; die "Building failed; the whole log is $log"; }
}

# change_base: prints the commit at which this branch left main, which is HEAD on main itself.
change_base() {
  local main
  main=$(git -C "$root" rev-parse -q --verify main || git -C "$root" rev-parse -q --verify origin/main) ||
    { say "Nothing to compare with: neither main nor origin/main is here. Fetch main with its history."; return 1; }
  git -C "$root" merge-base HEAD "$main" ||
    { say "Nothing to compare with: HEAD and main have no common commit here. Fetch their history."; return 1; }
}

has_driver() { [ -e /proc/driver/nvidia/version ] || ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; }

# Prints -DHM_CUDA=ON if a driver is found, --cuda is given, or build/release already has the GPU kernels; else OFF.
cuda_argument() { # [--cuda]
  local cache="$root/build/release/CMakeCache.txt"
  if [ "${1:-}" = --cuda ] || has_driver || grep -qs '^HM_CUDA:BOOL=ON' "$cache"; then
    echo -DHM_CUDA=ON
  else
    say "Left out: GPU kernels and NCCL, since no NVIDIA driver is here. scripts/run --cuda builds them."
    echo -DHM_CUDA=OFF
  fi
}

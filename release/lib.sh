# shellcheck shell=bash
# What the scripts of this folder share. Sourced, from the root of the repository.

fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
say() { printf '%s: %s\n' "${0##*/}" "$*"; }

# Names as in the files of a release: linux-amd64, darwin-arm64.
platform() {
    local system machine
    system=$(uname -s | tr '[:upper:]' '[:lower:]')
    case $(uname -m) in
        x86_64 | amd64) machine=amd64 ;;
        aarch64 | arm64) machine=arm64 ;;
        *) fail "no programs are built for the architecture $(uname -m)" ;;
    esac
    printf '%s-%s\n' "$system" "$machine"
}

# The one place: everything else that carries the version is written and checked by release/version.
version() { sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml | head -n 1; }

# Time in what is built is that of the commit, so that the same commit gives the same files.
epoch() { git log -1 --format=%ct 2>/dev/null || printf '0\n'; }

# A copy of what is packaged: a build leaves files behind, and files that are gone must not come back from an earlier one.
copy_sources() {
    mkdir -p "$1"
    cp -R pyproject.toml LICENSE README.md src packages "$1/"
    find "$1" \( -name __pycache__ -o -name '*.egg-info' -o -name build \) -type d -prune -exec rm -rf {} +
}

# An environment for a build tool, pinned: tools NAME PACKAGE... Each has its own: PyInstaller takes along whatever of
# its environment the programs could import.
tools() {
    local folder=build/tools/$1 python=${PYTHON:-python3}
    shift
    [[ -n ${PYTHON:-} || ! -x /usr/bin/python3 ]] || python=/usr/bin/python3 # built with profile-guided optimisation
    [ "$folder/.done" -nt constraints.txt ] && return
    "$python" -m venv --clear "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@"
    touch "$folder/.done"
}

#!/usr/bin/env bash
# Installs Fila without a Python: both programs as a folder in PREFIX/lib/fila, links to them in PREFIX/bin.
# What is fetched is checked against the SHA-256 of the release before anything is changed.
set -euo pipefail

# Where releases are. Written in by release/installer; FILA_RELEASES names another place, such as a mirror.
RELEASES=${FILA_RELEASES:-@RELEASES@}

usage() {
    cat <<'TEXT'
Usage: install.sh [--version VERSION] [--prefix DIR] [--uninstall]

  --version VERSION   a release such as 0.2.0, "dev" for the newest build of main (default: the newest release)
  --prefix DIR        where to install (default: /usr/local if it can be written, else ~/.local)
  --uninstall         remove what this script installed; messages and settings stay
  --help              this text

Example: curl -fsSL URL/install.sh | bash -s -- --prefix ~/.local
TEXT
}

say() { printf 'fila: %s\n' "$*"; }
fail() { printf 'fila: %s\n' "$*" >&2; exit 1; }

platform() {
    local system machine
    case $(uname -s) in
        Linux) system=linux ;;
        Darwin) system=darwin ;;
        *) fail "there are no programs for $(uname -s): with Python 3.11 or newer, run pip install 'fila[server]>=0.1'" ;;
    esac
    case $(uname -m) in
        x86_64 | amd64) machine=amd64 ;;
        aarch64 | arm64) machine=arm64 ;;
        *) fail "there are no programs for $(uname -m): with Python 3.11 or newer, run pip install 'fila[server]>=0.1'" ;;
    esac
    printf '%s-%s\n' "$system" "$machine"
}

fetch() { # URL FILE
    if command -v curl >/dev/null; then
        curl -fsSL --retry 2 --max-time 600 -o "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q --tries 3 --timeout 60 -O "$2" "$1"
    else
        fail "needs curl or wget to fetch files: install one of them"
    fi || fail "cannot fetch $1: check the version and the network"
}

digest() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1"
    elif command -v shasum >/dev/null; then
        shasum -a 256 "$1"
    else
        fail "needs sha256sum or shasum to verify files: install one of them"
    fi | cut -d ' ' -f 1
}

verify() { # FILE SUMS
    local name expected found
    name=$(basename "$1")
    expected=$(awk -v name="$name" '$2 == name { print $1 }' "$2")
    [ -n "$expected" ] || fail "SHA256SUMS of the release does not name $name: nothing was changed"
    found=$(digest "$1")
    [ "$expected" = "$found" ] || fail "$name has the checksum $found, the release says $expected: nothing was changed, try again"
}

default_prefix() {
    if [ -w /usr/local/bin ] && { [ -w /usr/local/lib ] || [ "$(id -u)" -eq 0 ]; }; then
        printf '/usr/local\n'
    else
        printf '%s\n' "${HOME:?HOME is not set: choose --prefix}/.local"
    fi
}

# A program of the same name that came from elsewhere is somebody's: it is neither replaced nor removed.
check_ours() { # PREFIX
    local name link
    [ ! -e "$1/lib/fila" ] || [ -e "$1/lib/fila/.install.sh" ] ||
        fail "$1/lib/fila was not made by this script: remove it, or choose another --prefix"
    for name in fila fila-server; do
        link=$1/bin/$name
        [ -e "$link" ] || [ -L "$link" ] || continue
        [ "$(readlink "$link" || true)" = "../lib/fila/$name" ] ||
            fail "$link was not made by this script: remove it, or choose another --prefix"
    done
}

url_of() { # VERSION
    case $1 in
        latest) printf '%s/latest/download\n' "$RELEASES" ;;
        dev) printf '%s/download/latest\n' "$RELEASES" ;; # the tag that follows main
        *) printf '%s/download/v%s\n' "$RELEASES" "${1#v}" ;;
    esac
}

install_fila() { # VERSION PREFIX
    local name url prefix=$2 work
    [[ $RELEASES != @* ]] || fail "does not know where releases are: set FILA_RELEASES to their address"
    name=fila-$(platform)
    url=$(url_of "$1")
    check_ours "$prefix"
    mkdir -p "$prefix/lib" "$prefix/bin"
    work=$(mktemp -d "$prefix/lib/.fila.XXXXXX") # on the same file system, so that the last step is a rename
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$work'" EXIT

    say "fetching $name.tar.gz from $url"
    fetch "$url/SHA256SUMS" "$work/SHA256SUMS"
    fetch "$url/$name.tar.gz" "$work/$name.tar.gz"
    verify "$work/$name.tar.gz" "$work/SHA256SUMS"
    say "the checksum is right"

    tar -xzf "$work/$name.tar.gz" -C "$work" --no-same-owner
    touch "$work/$name/.install.sh"
    "$work/$name/fila-server" --version >/dev/null 2>&1 ||
        fail "the programs do not run on this system (they need glibc 2.35 or newer, or macOS 13): nothing was changed"
    [ ! -e "$prefix/lib/fila" ] || mv "$prefix/lib/fila" "$work/old"
    mv "$work/$name" "$prefix/lib/fila"
    ln -sfn ../lib/fila/fila "$prefix/bin/fila"
    ln -sfn ../lib/fila/fila-server "$prefix/bin/fila-server"

    say "installed $("$prefix/bin/fila-server" --version) in $prefix/lib/fila, with links in $prefix/bin"
    [[ ":$PATH:" == *":$prefix/bin:"* ]] || say "$prefix/bin is not on your PATH: add it, or call $prefix/bin/fila-server"
    say "start the broker with: fila-server --listen 127.0.0.1:5555 --data-dir data"
}

uninstall_fila() { # PREFIX
    [ -e "$1/lib/fila/.install.sh" ] || fail "nothing is installed in $1: say --prefix if it is elsewhere"
    check_ours "$1"
    rm -f "$1/bin/fila" "$1/bin/fila-server"
    rm -rf "$1/lib/fila"
    say "removed $1/lib/fila and the links in $1/bin; messages and settings are where they were"
}

# All of it is read before any of it runs: a download that breaks off does nothing.
main() {
    local version=latest prefix='' uninstall=''
    while [ $# -gt 0 ]; do
        case $1 in
            --version | --prefix)
                [ $# -ge 2 ] || fail "$1 needs a value"
                [ "$1" = --version ] && version=$2 || prefix=$2
                shift
                ;;
            --uninstall) uninstall=yes ;;
            --help | -h) usage; exit ;;
            *) fail "unknown option $1: --help lists them" ;;
        esac
        shift
    done
    [[ $version =~ ^[0-9A-Za-z.+-]+$ ]] || fail "'$version' is not a version: say one such as 0.2.0"
    [ -n "$prefix" ] || prefix=$(default_prefix)
    if [ -n "$uninstall" ]; then uninstall_fila "$prefix"; else install_fila "$version" "$prefix"; fi
}

main "$@"

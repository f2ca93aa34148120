#!/bin/sh
# Installs the command `murmurate` from a release:
#
#   sh install.sh [VERSION]
#
# MURMURATE_FROM   where the files of the release are: a URL or a folder
# PREFIX           the command goes to $PREFIX/bin; ~/.local without it
#
# It needs no root and changes nothing else. If it is run again, it replaces the command.
set -eu

# `cargo xtask dist` writes these three: what it was made for.
release=""
releases=""
glibc="2.17"

refuse() {
    echo "install.sh: $1" >&2
    exit 1
}

version=${1:-${MURMURATE_VERSION:-$release}}
version=${version#v}
[ -n "$version" ] || refuse "give a version: sh install.sh 0.1.0"
from=${MURMURATE_FROM:-${releases:+$releases/v$version}}
[ -n "$from" ] || refuse "set MURMURATE_FROM to the URL or the folder with the files of the release"

system=$(uname -s)
machine=$(uname -m)
case "$system $machine" in
    "Linux x86_64") triple=x86_64-unknown-linux-gnu ;;
    "Linux aarch64" | "Linux arm64") triple=aarch64-unknown-linux-gnu ;;
    "Darwin arm64") triple=aarch64-apple-darwin ;;
    *) refuse "there is no build for $system on $machine; build it from source with cargo" ;;
esac

# Whether the version $1 is older than $2.
older() {
    [ "${1%%.*}" -lt "${2%%.*}" ] || { [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${1#*.}" -lt "${2#*.}" ]; }
}

if [ "$system" = Linux ]; then
    here=$(getconf GNU_LIBC_VERSION 2> /dev/null) || here=""
    here=$(echo "${here#glibc }" | cut -d . -f 1,2)
    case "$here" in
        [0-9]*.[0-9]*) ;;
        *) refuse "this system has no glibc (as Alpine has none); build it from source with cargo" ;;
    esac
    if older "$here" "$glibc"; then
        refuse "this system has glibc $here, the command needs $glibc or newer; build it from source with cargo"
    fi
fi

# Gets the file $1 of the release to the path $2.
get() {
    case "$from" in
        http://* | https://*)
            if command -v curl > /dev/null; then
                curl --fail --silent --show-error --location --output "$2" "$from/$1"
            elif command -v wget > /dev/null; then
                wget --no-verbose -O "$2" "$from/$1"
            else
                refuse "install curl or wget first, or download the files and set MURMURATE_FROM to their folder"
            fi
            ;;
        *) cp "${from#file://}/$1" "$2" ;;
    esac || refuse "cannot get $1 from $from (the reason is above)"
}

bin=${PREFIX:-${HOME:?}/.local}/bin
{ mkdir -p "$bin" 2> /dev/null && [ -w "$bin" ]; } ||
    refuse "no permission to write to $bin; set PREFIX to another folder"
# Beside its place, so that it gets there by one rename, with room for the archive and the command.
work=$(mktemp -d "$bin/.murmurate.XXXXXX" 2> /dev/null) || refuse "no room or no permission in $bin"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
free=$(df -Pk "$bin" | awk 'NR == 2 { print $4 }')
[ "$free" -ge 204800 ] || refuse "$bin has $((free / 1024)) MiB free, and 200 MiB are needed"

name=murmurate-$version-$triple
get SHA256SUMS "$work/SHA256SUMS"
get "$name.tar.gz" "$work/$name.tar.gz"
wanted=$(awk -v file="$name.tar.gz" '$2 == file { print $1 }' "$work/SHA256SUMS")
[ -n "$wanted" ] || refuse "SHA256SUMS does not list $name.tar.gz"
if command -v sha256sum > /dev/null; then
    found=$(sha256sum < "$work/$name.tar.gz")
elif command -v shasum > /dev/null; then
    found=$(shasum -a 256 < "$work/$name.tar.gz")
else
    refuse "install sha256sum (coreutils) or shasum first, which check the download"
fi
found=${found%% *}
[ "$found" = "$wanted" ] ||
    refuse "$name.tar.gz is damaged or was replaced: its SHA-256 is $found, and SHA256SUMS says $wanted"

tar -xzf "$work/$name.tar.gz" -C "$work" "$name/murmurate" || refuse "cannot unpack $name.tar.gz into $bin"
said=$("$work/$name/murmurate" --version) || refuse "the command does not start on this system"
mv -f "$work/$name/murmurate" "$bin/murmurate"
echo "installed $said: $bin/murmurate"
case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "add it to your PATH: export PATH=\"$bin:\$PATH\"" ;;
esac

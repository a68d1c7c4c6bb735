#!/bin/sh
# Installs the programs that the tests use and this machine lacks, where that is allowed. Where it
# is not, the tests that need one are skipped, and say which package it is in.
set -u
missing=
need() { # need PACKAGE PROGRAM…
	package=$1
	shift
	for program in "$@"; do
		PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null && return
	done
	missing="$missing $package"
}
need openssh-server sshd
need openssh-client ssh-keygen
need nginx-light nginx
need chromium chromium chromium-browser google-chrome
need busybox busybox
need tcsh csh
need fish fish
need shellcheck shellcheck
need procps ps
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null; then
	echo "not installed, tests that need them are skipped:$missing" >&2
elif [ "$(id -u)" = 0 ]; then
	apt-get update -qq >/dev/null
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
elif sudo -n true 2>/dev/null; then
	sudo -n apt-get update -qq >/dev/null
	# shellcheck disable=SC2086
	sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
else
	echo "tests that need these are skipped; install them with: sudo apt-get install$missing" >&2
fi

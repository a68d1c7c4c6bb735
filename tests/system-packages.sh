#!/bin/sh
# Installs the programs that the tests use and this machine lacks, where that is allowed. Where it
# is not, or where there is no such package, the tests that need one are skipped, and say which
# package it is in. It never fails.
set -u

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
may_install() { command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }
is_there() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null; }
updated=no
missing=

need() { # need PACKAGE PROGRAM…
	package=$1
	shift
	for program in "$@"; do is_there "$program" && return; done
	if may_install; then
		if [ $updated = no ]; then
			as_root apt-get update -qq >/dev/null 2>&1
			updated=yes
		fi
		as_root env DEBIAN_FRONTEND=noninteractive \
			apt-get install -qq -y --no-install-recommends "$package" >/dev/null 2>&1
	fi
	for program in "$@"; do is_there "$program" && return; done
	missing="$missing $package"
}

need openssh-server sshd
need openssh-client ssh-keygen
need nginx-light nginx
need chromium chromium chromium-browser google-chrome
need prometheus prometheus
need wrk wrk
need curl curl
need busybox busybox
need tcsh csh
need fish fish
need zsh zsh
need jq jq
need shellcheck shellcheck
need procps ps
[ -z "$missing" ] || echo "tests that need these are skipped; install them with: apt-get install$missing" >&2
exit 0

#!/bin/sh
# make-venv.sh PYTHON VENV: an environment of its own. Debian keeps the module for it in a package.
set -u
python=$1 venv=$2
may_install() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
	version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	if command -v apt-get >/dev/null && may_install; then
		as_root apt-get update -qq >/dev/null
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
			"python$version-venv" >/dev/null
	else
		echo "$python has no venv module: apt install python$version-venv" >&2
		exit 1
	fi
fi
rm -rf "$venv"
"$python" -m venv "$venv"

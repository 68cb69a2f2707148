#!/usr/bin/env bash
# The short tests of the library and the command on arm64, under an emulator from Debian's packages, which is fetched into .deps (or $WEIR_DEPS):
#   scripts/release-check.sh [PACKAGE...]
# An emulator is some ten times slower than a machine, so what measures time or memory is left out, and tests have an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} deps=${WEIR_DEPS:-$PWD/.deps}
emulator=$deps/qemu/usr/bin/qemu-aarch64-static
if [ ! -x "$emulator" ]; then
	command -v apt-get >/dev/null || { echo "release-check: the emulator comes from the packages of Debian or one of its kind" >&2; exit 1; }
	echo "release-check: qemu-user-static into $deps/qemu" >&2
	new=$deps/qemu.$$
	trap 'rm -rf "$new"' EXIT
	mkdir -p "$new"
	fetch() { (cd "$new" && apt-get -q download qemu-user-static >/dev/null 2>&1 || apt-get -q download qemu-user >/dev/null 2>&1) && ls "$new"/*.deb >/dev/null 2>&1; }
	fetch || { test "$(id -u)" -eq 0 && apt-get -q update >&2 && fetch; } || { echo "release-check: apt does not give qemu-user-static; run apt-get update as root" >&2; exit 1; }
	for deb in "$new"/*.deb; do dpkg -x "$deb" "$new"; done
	rm -f "$new"/*.deb
	# newer releases of Debian have it without the word
	[ -e "$new/usr/bin/qemu-aarch64-static" ] || ln -s qemu-aarch64 "$new/usr/bin/qemu-aarch64-static"
	rm -rf "$deps/qemu"
	mv "$new" "$deps/qemu"
	trap - EXIT
fi
[ $# -gt 0 ] || set -- ./... ./cmd/weir/...
export GOARCH=arm64 GOOS=linux CGO_ENABLED=0
echo "release-check: $("$go" version) for arm64, under $("$emulator" --version | head -n 1)"
exec "$go" test -short -timeout 60m -exec "$emulator" -skip 'Alloc|Memory|Wakeups|Size|CPU' "$@"

#!/usr/bin/env bash
# Builds everything for arm64, and runs short tests under an emulator. By default it tests the
# library itself and the packages that depend on the processor (byte order, word size, unsafe,
# atomics):
#
#	scripts/release-check.sh [PACKAGE...]    tests these packages instead: ./... ./cmd/weir/...
#
# The emulator comes from Debian's packages and is kept in .deps (or $WEIR_DEPS). It is about ten
# times slower than a real machine. The script therefore skips tests that measure time or memory,
# and gives the tests of a package an hour.
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
	# Newer releases of Debian name the program without "-static".
	[ -e "$new/usr/bin/qemu-aarch64-static" ] || ln -s qemu-aarch64 "$new/usr/bin/qemu-aarch64-static"
	rm -rf "$deps/qemu"
	mv "$new" "$deps/qemu"
	trap - EXIT
fi
[ $# -gt 0 ] || set -- . ./internal/proof/behaviour ./aggregate ./filter ./lease ./shard ./store/memstore ./kinesistest/... ./internal/history \
	./internal/http1 ./internal/jitter ./internal/keyed ./internal/polling ./internal/wire/...
export GOARCH=arm64 GOOS=linux CGO_ENABLED=0
echo "release-check: $("$go" version) for arm64, under $("$emulator" --version | head -n 1)"
"$go" build ./... ./cmd/weir/... ./store/redisstore/... ./sink/s3sink/... ./deadletter/sqsletters/... ./otelweir/... ./promweir/... ./payload/s3payload/... ./payload/zstdpayload/...
exec "$go" test -short -timeout 60m -exec "$emulator" -skip 'Alloc|Memory|Wakeups|Size|CPU' "$@"

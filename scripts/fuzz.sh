#!/usr/bin/env bash
# Runs every fuzz test of the root module for a while, one after the other: Go fuzzes one at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:-20s}
found=0
while IFS=: read -r file name; do
	found=1
	echo "== $name in $(dirname "$file") for $each"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$each" -fuzzminimizetime 1s "./$(dirname "$file")"
done < <(git ls-files '*_test.go' | grep -v -e '^cmd/' -e '^internal/integration/' |
	xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed -E 's/:func /:/')
if [ "$found" = 0 ]; then
	echo "no fuzz tests found" >&2
	exit 1
fi

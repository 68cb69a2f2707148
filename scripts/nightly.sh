#!/usr/bin/env bash
# What is longer than CI, one after the other, whatever fails; the last outcome is kept in internal/proof/NIGHTLY.md with its date and commit.
#   scripts/nightly.sh [TARGET...]     all of them unless some are named; a target may have its variables, as in "sim SIM=10m"
set -uo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- lint race bench "sim SIM=10m" mutants model "fuzz FUZZTIME=1m" scenarios costs bench-read "chaos CHAOS=-store all -for 10m" release-check
logs=$(mktemp -d)
page=internal/proof/NIGHTLY.md failed=0
{
	echo "# The last night"
	echo
	echo "What \`make nightly\` ran: $(date -u +%F), commit $(git rev-parse --short HEAD)$([ -z "$(git status --porcelain)" ] || echo " with changes"), $(nproc) cores, $(go version | cut -d' ' -f3)."
	echo
	echo "| Target | Outcome | Took | Its last line |"
	echo "| --- | --- | --- | --- |"
} >"$logs/page"
for target in "$@"; do
	name=${target%% *} began=$SECONDS variables=()
	[ "$name" = "$target" ] || variables=("${target#* }")
	make "$name" "${variables[@]}" >"$logs/$name" 2>&1 && outcome=ok || { outcome="**failed**"; failed=1; }
	last=$(grep -v '^make' "$logs/$name" | grep . | tail -n 1 | tr '|' '/' | cut -c1-200)
	echo "| \`make $target\` | $outcome | $(((SECONDS - began) / 60)) min | $last |" >>"$logs/page"
	printf 'nightly: %-12s %s, %d min; %s\n' "$name" "$outcome" $(((SECONDS - began) / 60)) "$logs/$name"
done
mv "$logs/page" "$page"
exit $failed

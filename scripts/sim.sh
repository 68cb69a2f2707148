#!/usr/bin/env bash
# Simulates for a time, in two processes at once, with seeds of the clock's unless a seed is given:
#   scripts/sim.sh 10m [seed] [profiles]
# Prints what was simulated, and each broken promise with the command that shows it again. Ends with 1 if there was one.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s} seed=${2:-$(( $(date +%s) * 1000 ))} profiles=${3:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${GO:-go}" test -c -o "$dir/sim.test" ./internal/sim
pids=()
for part in 1 2; do
	# Far apart, so that the two never come to the same seeds.
	"$dir/sim.test" -test.run='^TestSimulations$' -test.timeout=0 -sim.time="$time" -sim.seed=$((seed + part * 1000000000)) \
		-sim.profile="$profiles" >"$dir/$part" 2>&1 &
	pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
cat "$dir"/[12]
exit $bad

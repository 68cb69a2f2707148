#!/usr/bin/env bash
# Runs the simulations in two processes at once:
#
#   scripts/sim.sh 10m [seed] [profiles]     for ten minutes
#   scripts/sim.sh 100x [seed] [profiles]    with 100 seeds of each profile
#
# Without a seed the first seed comes from the clock. The script prints what was simulated, and for
# each broken promise the command that reproduces it. The last line has the worker hours (only the
# time in which workers lived), the time between two heartbeats of a worker, and the CPU time. The
# script exits with 1 if a promise was broken.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s} seed=${2:-$(( $(date +%s) * 1000 ))} profiles=${3:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${GO:-go}" test -c -tags lockranks -o "$dir/sim.test" ./internal/proof/sim
limit=(-sim.time="$time")
case $time in *x) limit=(-sim.seeds=$(((${time%x} + 1) / 2))) ;; esac
pids=()
for part in 1 2; do
	# The first seeds of the two processes are far apart, so that no seed runs in both.
	"$dir/sim.test" -test.run='^TestSimulations$' -test.timeout=0 "${limit[@]}" -sim.seed=$((seed + part * 1000000000)) \
		-sim.profile="$profiles" >"$dir/$part" 2>&1 &
	pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
cat "$dir"/[12]
awk '/ worker hours, .* CPU s / { hours += $1; beats += $4; cpu += $8; broken += $16 }
	END { if (hours) printf "together: %.0f worker hours, a beat each %.1f s, %.0f CPU s (%.3f for a worker hour), %d broken promises\n",
		hours, hours * 3600 / beats, cpu, cpu / hours, broken }' "$dir"/[12]
exit $bad

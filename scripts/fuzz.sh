#!/usr/bin/env bash
# Runs fuzz tests of all modules for a while each, one after the other: Go fuzzes one at a time.
#   fuzz.sh 20s             all of them, 20 s each
#   fuzz.sh 2s 12           12 of them, 2 s each, chosen by a seed that is printed; none is begun after a minute. With one seed in four
#                           the first is of the packages that take minutes to build
#   FUZZSEED=7 fuzz.sh 2s 12   the same 12 again
#   FUZZ=Parse fuzz.sh 60s  those with Parse in their names
# What makes a test fail is left in its testdata/fuzz; commit it with what mends it.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:-20s}
some=${2:-}
modules=$(git ls-files '*go.mod' | xargs -n1 dirname)

# module:package:name, the module being the longest that the file lies in
list() {
	git ls-files '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed -E 's/:func /:/' | sort |
		while IFS=: read -r file name; do
			dir=$(dirname "$file") module=.
			for m in $modules; do
				case "$dir/" in "$m"/*) [ ${#m} -gt ${#module} ] || [ "$module" = . ] && module=$m ;; esac
			done
			[ "$module" = . ] && echo ".:./$dir:$name" || echo "$module:.${dir#"$module"}:$name"
		done | grep -e "${FUZZ:-}"
}
all=$(list)
[ -n "$all" ] || { echo "no fuzz tests found" >&2; exit 1; }
if [ -n "$some" ]; then
	seed=${FUZZSEED:-$RANDOM}
	echo "== $some of $(wc -l <<<"$all") fuzz tests, FUZZSEED=$seed"
	# With SQLite and all drivers these take minutes to build when nothing is cached, so their turn comes seldom.
	slow='^cmd/weir:\.:|^cmd/weir:.*/(group|local|put):|/serverstore:'
	shuffled() { awk -v seed="$seed" 'BEGIN {srand(seed)} {print rand() "\t" $0}' | sort | cut -f2; }
	first=
	[ $((seed % 4)) -ne 0 ] || first=$(grep -E -e "$slow" <<<"$all" | shuffled | sed -n 1p)
	quick=$(grep -Ev -e "$slow" <<<"$all" | shuffled)
	all=$(printf '%s\n%s\n' "$first" "$quick" | grep . | sed -n "1,${some}p")
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
while IFS=: read -r module package name; do
	if [ -n "$some" ] && [ $SECONDS -gt 60 ]; then
		echo "== a minute is over; the rest another time"
		break
	fi
	echo "== $name in $module/$package for $each"
	if (cd "$module" && go test -run '^$' -fuzz "^$name\$" -fuzztime "$each" -fuzzminimizetime 1s "$package") >"$out" 2>&1; then
		grep '^fuzz: elapsed' "$out" | tail -1
	elif ! grep -q -e 'Failing input' -e 'panic' -e 'build failed' "$out" && grep -q '^ *context deadline exceeded$' "$out"; then
		echo "it found nothing (the fuzzer itself came late)" # go test says so now and then when its time is up
	else
		cat "$out"
		exit 1
	fi
done <<<"$all"

#!/usr/bin/env bash
# Runs the fuzz tests of all modules one after the other, because Go can only fuzz one test at a
# time:
#
#   fuzz.sh 20s                all tests, 20 s each
#   fuzz.sh 2s 12              12 random tests, 2 s each
#   FUZZSEED=7 fuzz.sh 2s 12   the 12 tests of the run that printed seed 7
#   FUZZ=Parse fuzz.sh 60s     the tests with Parse in their names
#
# A run of random tests prints the seed that chose them, and starts no test after the first minute.
# One seed in four begins with a test of a package that takes minutes to build.
#
# Go writes an input that makes a test fail to the testdata/fuzz of the package. Commit this file
# together with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:-20s}
some=${2:-}
modules=$(git ls-files '*go.mod' | xargs -n1 dirname)

# list prints each fuzz test as module:package:name. If the folders of several modules contain the
# test, it belongs to the innermost one.
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
	# These packages include SQLite and all drivers. Without Go's build cache they take minutes to
	# build, so only one seed in four chooses one of them.
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
		echo "it found nothing (the fuzzer itself came late)" # go test sometimes ends with this error
	else
		cat "$out"
		exit 1
	fi
done <<<"$all"

#!/usr/bin/env bash
# Runs the complete proof in stages. It writes the outcome of each stage as a row of the page
# internal/proof/NIGHTLY.md.
#
#   scripts/nightly.sh              the stages that have not passed for this commit yet, so that a
#                                   run that was stopped continues
#   scripts/nightly.sh STAGE...     these stages
#   scripts/nightly.sh --list       prints the stages with the make targets that they run
#
# The tree must have no uncommitted changes, because each row names a commit. This is the last
# commit that changes any file except the page. If a stage fails, the script runs the other stages
# and then exits with 1.
set -uo pipefail
cd "$(dirname "$0")/.."

# Each line is a stage: its name, then the make target and its variables.
stages='lint            lint
cross           cross
test-releases   test-releases
install-check   install-check
test-long       test-long
race            race
sim             sim SIM=10m
sim-queue       sim-queue SIM=5m
mutants         mutants
mutants-queue   mutants MUTANTS=-of internal/proof/queuesim
model           model
fuzz            fuzz FUZZTIME=20s
bench           bench
bench-read      bench-read
bench-queue     bench-queue
integration     integration
alerts          alerts
situations      situations
sink            sink
failures        failures
costs           costs
scenarios       scenarios
why-move        why-move
chaos-dynamodb  chaos CHAOS=-store dynamodb -for 10m
chaos-postgres  chaos CHAOS=-store postgres -for 10m
chaos-redis     chaos CHAOS=-store redis -for 10m
chaos-queue     chaos-queue QUEUECHAOS=-for 5m
release-check   release-check'

page=internal/proof/NIGHTLY.md
names() { awk '{print $1}' <<<"$stages"; }
target_of() { awk -v s="$1" '$1 == s {sub(/^[^ ]+ +/, ""); print}' <<<"$stages"; }
row_of() { grep -F "| $1 |" "$page" 2>/dev/null | head -n 1; }

if [ "${1:-}" = --list ]; then
	echo "$stages"
	exit
fi
for stage in "$@"; do
	[ -n "$(target_of "$stage")" ] || {
		printf 'nightly: there is no stage %s; the stages are:\n%s\n' "$stage" "$(names)" >&2
		exit 2
	}
done
[ -z "$(git status --porcelain -- . ":!$page")" ] || {
	echo "nightly: commit the changes first, because each row names a commit" >&2
	exit 2
}
commit=$(git log -1 --format=%h -- . ":!$page")

# write NAME ROW replaces the row of stage NAME on the page. A stage that never ran gets a row with
# "not run".
write() {
	local new stage row
	new=$(mktemp)
	{
		cat <<-'END'
			# The complete proof, stage by stage

			`make nightly` runs the stages and writes this page; `make nightly STAGES="mutants model"` runs two of
			them. A row holds for its commit. The key figure is the line in which the stage sums itself up.

			| Stage | Outcome | Commit | Date | Took | Machine | Key figure |
			| --- | --- | --- | --- | --- | --- | --- |
		END
		for stage in $(names); do
			if [ "$stage" = "$1" ]; then
				row=$2
			else
				row=$(row_of "$stage")
			fi
			echo "${row:-| $stage | not run | | | | | |}"
		done
	} >"$new"
	cat "$new" >"$page"
	rm -f "$new"
}

[ $# -gt 0 ] || set -- $(for s in $(names); do row_of "$s" | grep -qF "| ok | $commit |" || echo "$s"; done)
[ $# -gt 0 ] || { echo "nightly: every stage has passed for $commit"; exit 0; }
logs=${WEIR_NIGHTLY_LOGS:-$(mktemp -d)}
mkdir -p "$logs"
failed=0
for stage in "$@"; do
	read -r target variables <<<"$(target_of "$stage")"
	began=$SECONDS load=$(cut -d' ' -f1 /proc/loadavg 2>/dev/null)
	if make "$target" ${variables:+"$variables"} >"$logs/$stage" 2>&1; then
		outcome=ok
	else
		outcome="**failed**" failed=1
	fi
	figure=$(grep -vE '^(make|exit status|ok |\?|PASS$|FAIL|\s*(--- .*)?$)' "$logs/$stage" | tail -n 1 | tr '|\t' '/ ' | cut -c1-160)
	[ -n "$figure" ] || figure=$(grep . "$logs/$stage" | tail -n 1 | tr '|\t' '/ ' | cut -c1-160)
	took="$(((SECONDS - began) / 60)) min $(((SECONDS - began) % 60)) s"
	write "$stage" "| $stage | $outcome | $commit | $(date -u +%F) | $took | $(nproc) cores, load ${load:-?} at the start | $figure |"
	printf 'nightly: %-14s %s, %s; %s\n' "$stage" "$outcome" "$took" "$logs/$stage"
done
exit $failed

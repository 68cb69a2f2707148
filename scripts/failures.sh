#!/usr/bin/env bash
# Shows what happens to records that fail. It runs processes of the command on 20,000 records:
#
#   scripts/failures.sh [file of 20,000 or more lines of JSON with an "origin"]
#
# In the first part the handler fails on one record every time. The command must find this record
# and dead-letter it with its payload. A repaired handler then handles the dead letter.
#
# In the second part the handler fails on every record for a minute, as if a service that it needs
# were down. The command must not dead-letter any record.
#
# The script prints each count next to the expected count. It exits with 1 if one of them differs.
set -euo pipefail
cd "$(dirname "$0")/.."
records=20000 poison=12345
"${GO:-go}" build -C cmd/weir -o ../../bin/weir .
weir=$PWD/bin/weir dir=$(mktemp -d) pids=()
end() {
	for pid in "${pids[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
	wait
	rm -rf "$dir"
}
trap end EXIT
bad=0
counted() { # what, how many, how many it should be
	local said=""
	[ "$2" = "$3" ] || { bad=1; said=" WRONG"; }
	printf '  %-58s %7s  (= %s)%s\n' "$1" "$2" "$3" "$said"
}
lines() { cat "$@" 2>/dev/null | wc -l | tr -d ' '; }

if [ $# -gt 0 ]; then
	head -n "$records" "$1"
else
	awk -v n="$records" 'BEGIN { split("HNL SFO DTW LAS JFK ORD ATL DFW SEA BOS", from, " "); for (i = 1; i <= n; i++) printf "{\"n\":%d,\"delay\":%d,\"origin\":\"%s\"}\n", i, i * 7 % 200, from[i * 31 % 10 + 1] }'
fi | awk -v p="$poison" 'NR == p { sub(/}$/, ",\"poison\":true}") } { print }' >"$dir/flights.ndjson"
[ "$(lines "$dir/flights.ndjson")" = "$records" ] || { echo "there are fewer than $records lines" >&2; exit 1; }

cd "$dir"
"$weir" local --addr 127.0.0.1:0 --stream flights:4 >local.log 2>&1 &
pids+=($!)
until grep -q AWS_ENDPOINT_URL_KINESIS local.log; do sleep 0.1; done
AWS_ENDPOINT_URL_KINESIS=$(sed -n 's/.*AWS_ENDPOINT_URL_KINESIS=//p' local.log | head -1)
export AWS_ENDPOINT_URL_KINESIS AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
"$weir" put --stream flights --key origin flights.ndjson >/dev/null

# consume NAME RECORDS COMMAND runs weir consume as application NAME with COMMAND as the handler. It
# stops weir consume when COMMAND has handled RECORDS records, or after three minutes.
consume() {
	local name=$1 want=$2 command=$3
	"$weir" consume --stream flights --app "$name" --store "sqlite:$name.db" --batch 500 --max-attempts 3 --bisect --dead "file:$name.dead.ndjson" --exec "$command" >"$name.log" 2>&1 &
	local pid=$!
	pids+=($pid)
	for _ in $(seq 1 1800); do
		[ "$(lines "$name".done.*)" -lt "$want" ] || break
		sleep 0.1
	done
	sleep 3 # time for records that are delivered twice to arrive
	kill -INT "$pid"
	wait "$pid" || { echo "weir consume ended with an error:"; tail -3 "$name.log"; bad=1; }
}

echo "One record of $records can never be handled (--max-attempts 3 --bisect --dead file:…):"
# The handler handles a whole batch or none of it.
consume poison $((records - 1)) 'cat >batch.$$; if grep -q poison batch.$$; then rm batch.$$; exit 1; fi; mv batch.$$ poison.done.$WEIR_SHARD.$$'
cat poison.done.* >handled.ndjson
counted "records handled" "$(lines handled.ndjson)" $((records - 1))
counted "different ones" "$(sort -u handled.ndjson | lines -)" "$(grep -v poison flights.ndjson | sort -u | lines -)"
counted "letters" "$(lines poison.dead.ndjson)" 1
"$weir" dead list --dead file:poison.dead.ndjson | sed 's/^/    /'
"$weir" dead retry --dead file:poison.dead.ndjson --all --yes --exec 'cat >again' >retry.log 2>&1 || bad=1
counted "its payload, handed to a handler that is mended" "$(cat again)" "$(sed -n "${poison}p" flights.ndjson)"
counted "letters that are left" "$("$weir" dead list --dead file:poison.dead.ndjson -o json 2>/dev/null | grep -c '"kept"' || true)" 0

echo "What the handler needs is away for a minute:"
touch away
( sleep 60; rm -f away ) &
consume outage "$records" 'cat >batch.$$; if [ -e away ]; then rm batch.$$; exit 1; fi; mv batch.$$ outage.done.$WEIR_SHARD.$$'
counted "records handled" "$(lines outage.done.*)" "$records"
counted "letters" "$(lines outage.dead.ndjson)" 0
exit $bad

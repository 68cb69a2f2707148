package main

import (
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/proof/wronginput"
)

func wrongQueues(p *wrongPlace) []wronginput.Input {
	p.kinesis.CreateOnDemandStream("ondemand")
	long := strings.Repeat("x", 129)
	arn := "arn:aws:kinesis:us-east-1:000000000000:queue/none"
	return slices.Concat(under("queue",
		misused("an unknown command of queue", "queue bogus", `unknown command "bogus"`),
		misused("a misspelt command of queue", "queue describ --queue q", "is it describe?"),
		misused("no queue", "queue describe "+p.endpoint, "weir queue describe needs --queue"),
		misused("no stream for a new queue", "queue create --queue q "+p.endpoint, "needs --stream"),
		misused("a new queue by ARN", "queue create --queue "+arn+" --stream ondemand "+p.endpoint, "a queue is made by its name"),
		misused("a name with a slash", "queue describe --queue a/b "+p.endpoint, `--queue "a/b"`, "1 to 128"),
		misused("a name that is too long", "queue describe --queue "+long+" "+p.endpoint, "--queue", "1 to 128"),
		misused("the ARN of a stream", "queue describe --queue "+p.kinesis.StreamARN("s")+" "+p.endpoint, "is the ARN of a stream", "weir queue list"),
		misused("a queue of SQS", "queue describe --queue https://sqs.us-east-1.amazonaws.com/1/q "+p.endpoint, "is not a queue of Kinesis"),
		misused("an ARN that is none", "queue describe --queue arn:aws:kinesis:x "+p.endpoint, "is not the ARN of a queue"),
		misused("an unknown format", "queue list -o yaml "+p.endpoint, "use text or json"),
		misused("a start in the future", "queue create --queue q --stream ondemand --from 2200-01-01T00:00:00Z "+p.endpoint, "--from", "future"),
		misused("a start that is none", "queue create --queue q --stream ondemand --from there "+p.endpoint, `--from "there"`, "oldest"),
		misused("too many receives", "queue create --queue q --stream ondemand --max-receives 1001 "+p.endpoint, "--max-receives 1001", "1 to 1000"),
		misused("two settings of dead letters", "queue create --queue q --stream ondemand --max-receives 9 --no-dead-letters "+p.endpoint, "exclude each other"),
		misused("a long visibility timeout", "queue update --queue q --visibility 13h "+p.endpoint, "--visibility 13h0m0s: want 1s to 12h"),
		misused("a visibility timeout of half a second", "queue update --queue q --visibility 1500ms "+p.endpoint, "whole seconds"),
		misused("no change", "queue update --queue q "+p.endpoint, "changes nothing", "--max-receives"),
		misused("a deletion without a terminal", "queue delete --queue q "+p.endpoint, "add --yes"),
		misused("a peek again and again", "queue describe --queue q --peek --watch "+p.endpoint, "--peek", "--watch"),
		misused("no choice of dead letters", "queue dead retry --queue q "+p.endpoint, "needs --all, or the IDs"),
		misused("two choices of dead letters", "queue dead drop --queue q --all --yes "+p.endpoint+" id", "exclude each other"),
		misused("two dead letters to show", "queue dead show --queue q "+p.endpoint+" a b", "shows one dead letter"),
		misused("no place for copies", "queue copy-dead --queue q --all "+p.endpoint, "needs --dead", "WEIR_DEAD"),
		misused("copies to nowhere", "queue copy-dead --queue q --all --dead here "+p.endpoint, `"here"`),
		fails("a provisioned stream", "queue create --queue q --stream s "+p.endpoint, "stream s is in provisioned mode"),
		fails("a stream that is not there", "queue create --queue q --stream none "+p.endpoint, "there is no such stream"),
		fails("a queue that is not there", "queue describe --queue none "+p.endpoint, "there is no queue none", "weir queue create"),
		fails("an ARN that is not there", "queue dead list --queue "+arn+" "+p.endpoint, "there is no such queue", "--queue"),
		fails("a queue in another region", "queue describe --queue arn:aws:kinesis:eu-west-1:000000000000:queue/none "+p.endpoint, "eu-west-1"),
	), under("consume a queue",
		misused("no queue", "queue consume "+p.endpoint, "weir queue consume needs --queue"),
		misused("a stream besides", "consume --queue q --stream s "+p.endpoint, "--stream does not go with --queue", "leave it out"),
		misused("a flag about shards", "queue consume --queue q --max-leases 3 "+p.endpoint, "--max-leases does not go with --queue", "shards"),
		misused("a hold for shards", "consume --stream s --app a --store memory: --hold 1m "+p.endpoint, "--hold applies only to queues"),
		misused("a short hold", "queue consume --queue q --hold 1s "+p.endpoint, "--hold is 1s", "5s"),
		misused("results without a command", "queue consume --queue q --exec-results "+p.endpoint, "--exec-results applies only to --exec"),
		misused("a filter that is none", "queue consume --queue q --filter {\"data\" "+p.endpoint, "--filter"),
		misused("an unknown codec", "queue consume --queue q --decode lz4 "+p.endpoint, `--decode "lz4"`, "gzip"),
		misused("a choice without a filter", "queue consume --queue q --filter-not-json drop "+p.endpoint, "add --filter"),
		misused("two handlers", "queue consume --queue q --exec cat --invoke http://127.0.0.1:9 "+p.endpoint, "two ways to handle a record"),
		misused("a function at a path", "queue consume --queue q --invoke /there "+p.endpoint, "--invoke", "http://127.0.0.1:9000"),
		misused("a function without a name", "queue consume --queue "+arn+" --invoke http://127.0.0.1:9 "+p.endpoint, "add --app NAME"),
		misused("windows of a queue", "queue consume --queue q --lambda cat --tumbling-window-in-seconds 5 "+p.endpoint, "a queue has no order"),
		misused("a call longer than the hold", "queue consume --queue q --lambda cat --lambda-timeout 2h "+p.endpoint, "--lambda-timeout 2h0m0s", "--max-hold"),
		misused("a setting of functions", "queue consume --queue q --batch-size 5 "+p.endpoint, "--batch-size applies only to functions"),
		misused("an address for health", "queue consume --queue q --health nowhere:x "+p.endpoint, "--health"),
		misused("an address for metrics", "queue consume --queue q --metrics nowhere:x "+p.endpoint, "--metrics"),
		misused("metrics by shard", "consume --queue q --metrics 0 --metrics-by-shard "+p.endpoint, "a queue has no shards"),
		fails("a queue that is not there", "queue consume --queue none "+p.endpoint, "there is no queue none"),
	), under("doctor of a queue",
		misused("an application, too", "doctor --queue q --app a "+p.endpoint, "--app does not go with --queue"),
		misused("a name that cannot be", "doctor --queue a/b "+p.endpoint, `--queue "a/b"`),
		fails("a queue that is not there", "doctor --queue none "+p.endpoint, "there is no queue none"),
	), under("page of queues",
		misused("changes without a store", "dashboard --queues --allow-writes "+p.endpoint, "add --store"),
	))
}

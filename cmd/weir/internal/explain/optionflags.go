package explain

import (
	"errors"
	"regexp"
	"strings"
)

// OptionFlags are the flags that fill options in, by the names that errors of package weir have for
// them.
var OptionFlags = map[string]string{
	"App": "app", "Stream": "stream", "Streams": "stream", "Worker": "worker", "Start": "from", "Batch": "batch", "BatchBytes": "batch-bytes", "BatchWait": "batch-wait", "FanOutName": "fan-out", "FanOutARN": "fan-out", "FanOutARNs": "fan-out", "RemoveFanOut": "remove-fan-out", "NoHistory": "no-history",
	"StopTimeout": "stop-timeout", "HandlerTimeout": "handler-timeout", "SuspectAfter": "suspect-after", "Expired": "expired", "Shards": "shard", "ReadShare": "read-share",
	"IdleInterval": "idle-interval", "RetryMin": "retry-min", "RetryMax": "retry-max", "BeatInterval": "beat-interval",
	"FailoverAfter": "failover-after", "HandoffTimeout": "handoff-timeout", "StallAfter": "stall-after", "ListInterval": "list-interval",
	"MaxMemory": "max-memory", "MaxLeases": "max-leases", "Weight": "weight", "Aggregates": "aggregates", "Wire": "wire", "Reading": "fan-out", "Filter": "filter", "By": "filter", "NotJSON": "filter-not-json",
	"Parallel": "parallel", "Keys": "parallel", "GiveUp": "dead", "To": "dead", "Attempts": "attempts", "MaxAge": "max-age", "Bisect": "bisect", "Patience": "patience", "PerMinute": "dead-per-minute",
}

var optionForm = regexp.MustCompile(`(weir: )?\b(Reader)?Options\.(?:GiveUp\.|Parallel\.|Filter\.)?([A-Za-z]+)`)

// clientsRegion is package weir's advice to the caller who makes the client.
var clientsRegion = regexp.MustCompile(`the SDK uses the client's region, so make the client with region (\S+)`)

// TextInFlags is a text with flags where it names options.
func TextInFlags(text string) string {
	return optionForm.ReplaceAllStringFunc(text, func(found string) string {
		if flag, ok := OptionFlags[found[strings.LastIndex(found, ".")+1:]]; ok {
			return "--" + flag
		}
		return found
	})
}

// InFlags is an error about options in the words of a command line.
func InFlags(err error) error {
	text := TextInFlags(err.Error())
	text = clientsRegion.ReplaceAllString(text, "give --region $1")
	return errors.New(strings.ReplaceAll(text, "\n", "; "))
}

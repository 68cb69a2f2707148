package explain

import (
	"errors"
	"regexp"
	"strings"
)

// otherNames maps options to their flags, if the flag is not named after the last word of the
// option. An option without a flag maps to "".
var otherNames = map[string]string{
	"Streams": "stream", "DiscoverStreams": "", "Start": "from", "Shards": "shard",
	"FanOut": "fan-out", "FanOut.Mode": "fan-out", "FanOut.Name": "fan-out-name",
	"FanOut.ARNs": "fan-out-arn", "OnEvent": "", "Logger": "", "ReuseBuffers": "",

	"Batching.MaxRecords": "batch", "Batching.MaxBytes": "batch-bytes",
	"Batching.MaxWait": "batch-wait",
	"Polling.Share":    "read-share",
	"Retry.MinBackoff": "retry-min", "Retry.MaxBackoff": "retry-max",
	"Filter.By":   "filter",
	"Concurrency": "parallel", "Concurrency.Keys": "parallel", "Concurrency.MaxCalls": "",
	"Concurrency.MaxRecords": "", "Concurrency.MaxBytes": "", "Concurrency.MaxAge": "",
	"Filter.NotJSON": "filter-not-json",
	"OnFailure":      "dead", "OnFailure.Destination": "dead",
	"OnFailure.MaxPerMinute": "dead-letters-per-minute",

	// Options of package queue.
	"MaxBytes": "max-memory", "BatchSize": "batch", "MinBackoff": "retry-min", "MaxBackoff": "retry-max",
	"KeepPacked": "aggregates", "API": "", "Wait": "", "Events": "",
}

var inWords = regexp.MustCompile(`([a-z])([A-Z])`)

// OptionFlag returns the name of the flag that sets an option of package weir, such as
// "Batching.MaxRecords". It returns "" if there is none.
func OptionFlag(option string) string {
	if flag, other := otherNames[option]; other {
		return flag
	}
	last := option[strings.LastIndex(option, ".")+1:]
	return strings.ToLower(inWords.ReplaceAllString(last, "$1-$2"))
}

var optionForm = regexp.MustCompile(
	`(?:weir: )?\b(?:Reader|queue\.)?Options\.([A-Z][A-Za-z]*(?:\.[A-Z][A-Za-z]*)*)`)

// fanOutMode matches a constant of weir.FanOutMode. The flag has the same word in lower case.
var fanOutMode = regexp.MustCompile(`\bFanOut(Off|Existing|Register|Temporary)\b`)

// clientsRegion matches package weir's advice about the region of the client, which is meant for Go
// programs.
var clientsRegion = regexp.MustCompile(
	`the SDK uses the client's region, so make the client with region (\S+)`)

// TextInFlags replaces the names of options in a text by flags.
func TextInFlags(text string) string {
	text = fanOutMode.ReplaceAllStringFunc(text, func(found string) string {
		return strings.ToLower(strings.TrimPrefix(found, "FanOut"))
	})
	return optionForm.ReplaceAllStringFunc(text, func(found string) string {
		if flag := OptionFlag(optionForm.FindStringSubmatch(found)[1]); flag != "" {
			return "--" + flag
		}
		return found
	})
}

// InFlags replaces the names of options in an error by flags, and adapts the advice to the command
// line.
func InFlags(err error) error {
	text := TextInFlags(err.Error())
	text = clientsRegion.ReplaceAllString(text, "give --region $1")
	return errors.New(strings.ReplaceAll(text, "\n", "; "))
}

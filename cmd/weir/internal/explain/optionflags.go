package explain

import (
	"errors"
	"regexp"
	"strings"
)

// otherNames maps options to their flags, if the flag has a different name. An option without a
// flag maps to "".
var otherNames = map[string]string{
	"Streams": "stream", "DiscoverStreams": "", "Start": "from", "Shards": "shard",
	"Mode": "fan-out", "Name": "fan-out-name", "ARNs": "fan-out-arn",
	"OnEvent": "", "Logger": "", "ReuseBuffers": "",
	"Keys": "parallel", "Calls": "", "Span": "", "SpanBytes": "", "SpanAge": "",
	"By": "filter", "NotJSON": "filter-not-json",
	"GiveUp": "dead", "To": "dead", "PerMinute": "dead-per-minute",
}

var inWords = regexp.MustCompile(`([a-z])([A-Z])`)

// OptionFlag returns the name of the flag that sets an option of package weir. It returns "" if
// there is none.
func OptionFlag(option string) string {
	if flag, other := otherNames[option]; other {
		return flag
	}
	return strings.ToLower(inWords.ReplaceAllString(option, "$1-$2"))
}

var optionForm = regexp.MustCompile(
	`(weir: )?\b(Reader)?Options\.(?:GiveUp\.|Parallel\.|Filter\.|FanOut\.)?([A-Za-z]+)`)

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
		if flag := OptionFlag(found[strings.LastIndex(found, ".")+1:]); flag != "" {
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

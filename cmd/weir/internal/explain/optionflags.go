package explain

import (
	"errors"
	"regexp"
	"strings"
)

// otherNames are the flags of options that do not have the option's name. An option without a flag
// has "".
var otherNames = map[string]string{
	"Streams": "stream", "StreamsFunc": "", "Start": "from", "Shards": "shard",
	"Reading": "fan-out", "FanOutName": "fan-out", "FanOutARN": "fan-out", "FanOutARNs": "fan-out",
	"FanOutConsumer": "", "Events": "", "Logger": "", "ReuseBuffers": "",
	"Keys": "parallel", "Calls": "", "Span": "", "SpanBytes": "", "SpanAge": "",
	"By": "filter", "NotJSON": "filter-not-json",
	"GiveUp": "dead", "To": "dead", "PerMinute": "dead-per-minute",
}

var inWords = regexp.MustCompile(`([a-z])([A-Z])`)

// OptionFlag returns the name of the flag that sets an option of package weir, or "".
func OptionFlag(option string) string {
	if flag, other := otherNames[option]; other {
		return flag
	}
	return strings.ToLower(inWords.ReplaceAllString(option, "$1-$2"))
}

var optionForm = regexp.MustCompile(
	`(weir: )?\b(Reader)?Options\.(?:GiveUp\.|Parallel\.|Filter\.)?([A-Za-z]+)`)

// clientsRegion is package weir's advice to the caller who makes the client.
var clientsRegion = regexp.MustCompile(
	`the SDK uses the client's region, so make the client with region (\S+)`)

// TextInFlags is a text with flags where it names options.
func TextInFlags(text string) string {
	return optionForm.ReplaceAllStringFunc(text, func(found string) string {
		if flag := OptionFlag(found[strings.LastIndex(found, ".")+1:]); flag != "" {
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

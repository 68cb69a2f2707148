package engine

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

type (
	optText = codec.Opt[string]
	optInt  = codec.Opt[int64]
	optBool = codec.Opt[bool]
)

// validator collects the faults in the fields of a request. One answer then lists all of them, with
// the texts of the service.
type validator struct{ faults []string }

// maxFaults is the maximum number of faults that the service lists.
const maxFaults = 10

func (v *validator) full() bool { return len(v.faults) >= maxFaults }

// fault adds a fault: value violates the constraint of member. value must look as Java prints it.
func (v *validator) fault(value, member, constraint string) {
	v.note("'"+value+"'", member, constraint)
}

func (v *validator) note(shown, member, constraint string) {
	if !v.full() {
		v.faults = append(v.faults, "Value "+shown+" at '"+member+"' failed to satisfy constraint: "+constraint)
	}
}

func (v *validator) err() error {
	switch n := len(v.faults); n {
	case 0:
		return nil
	case 1:
		return validation("1 validation error detected: %s", v.faults[0])
	default:
		return validation("%d validation errors detected: %s", n, strings.Join(v.faults, "; "))
	}
}

func (v *validator) required(set bool, member string) bool {
	if !set {
		v.note("null", member, "Member must not be null")
	}
	return set
}

// length checks the number of characters of s.
func (v *validator) length(s, member string, least, most int) {
	v.lengthOf(utf8.RuneCountInString(s), func() string { return s }, member, least, most)
}

// lengthOf checks the length n of another kind of value.
func (v *validator) lengthOf(n int, shown func() string, member string, least, most int) {
	switch {
	case n < least:
		v.fault(shown(), member, "Member must have length greater than or equal to "+strconv.Itoa(least))
	case n > most:
		v.fault(shown(), member, "Member must have length less than or equal to "+strconv.Itoa(most))
	}
}

// pattern is a regular expression that must match a whole string. text is the expression as the
// service prints it.
type pattern struct {
	*regexp.Regexp
	text string
}

func newPattern(text string) pattern {
	return pattern{regexp.MustCompile(`^(?:` + strings.TrimPrefix(text, "^") + `)$`), text}
}

var (
	namePattern     = newPattern(`[a-zA-Z0-9_.-]+`)
	hashPattern     = newPattern(`0|([1-9]\d{0,38})`)
	sequencePattern = newPattern(`0|([1-9]\d{0,128})`)
	streamARN       = newPattern(`arn:aws.*:kinesis:.*:\d{12}:stream/\S+`)
	queueARN        = newPattern(`arn:aws.*:kinesis:.*:\d{12}:queue/\S+`)
	consumerARN     = newPattern(`^(arn):aws.*:kinesis:.*:\d{12}:.*stream\/[a-zA-Z0-9_.-]+\/consumer\/[a-zA-Z0-9_.-]+:[0-9]+`)
	resourceARN     = newPattern(`arn:aws.*:kinesis:.*:\d{12}:.*(stream|channel|queue)/\S+`)
)

func (v *validator) pattern(s, member string, p pattern) {
	if !p.MatchString(s) {
		v.fault(s, member, "Member must satisfy regular expression pattern: "+p.text)
	}
}

func (v *validator) intRange(n optInt, member string, least, most int64) {
	switch {
	case !n.Set:
	case n.V < least:
		v.fault(strconv.FormatInt(n.V, 10), member, fmt.Sprintf("Member must have value greater than or equal to %d", least))
	case n.V > most:
		v.fault(strconv.FormatInt(n.V, 10), member, fmt.Sprintf("Member must have value less than or equal to %d", most))
	}
}

func (v *validator) enum(s optText, member string, values ...string) {
	if s.Set && !slices.Contains(values, s.V) {
		v.fault(s.V, member, "Member must satisfy enum value set: ["+strings.Join(values, ", ")+"]")
	}
}

// name checks the name of a stream, shard or consumer, if the request contains it. For an empty
// name the service reports all faults. For a long name with valid characters, it reports only the
// length.
func (v *validator) name(s optText, member string) { v.text(s, member, namePattern, 128) }

func (v *validator) text(s optText, member string, p pattern, most int) {
	if s.Set {
		v.pattern(s.V, member, p)
		v.length(s.V, member, 1, most)
	}
}

func (v *validator) requiredName(s optText, member string) {
	if v.required(s.Set, member) {
		v.name(s, member)
	}
}

func (v *validator) streamARN(s optText, member string)   { v.text(s, member, streamARN, 2048) }
func (v *validator) consumerARN(s optText, member string) { v.text(s, member, consumerARN, 2048) }

// Limits of the tags in one request. A resource has at most maxTags tags.
const (
	maxTagMap = 200
	maxTagKey = 128
	maxTagVal = 256
)

func sizes(most, least int) string {
	return fmt.Sprintf("constraint: [Member must have length less than or equal to %d, Member must have length greater than or equal to %d]", most, least)
}

// tags checks tags to set.
func (v *validator) tags(tags map[string]string, least int) {
	shown := func() string {
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(tags)) {
			pairs = append(pairs, k+"="+tags[k])
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	v.lengthOf(len(tags), shown, "tags", least, maxTagMap)
	longKey, longValue := false, false
	for k, value := range tags {
		longKey = longKey || k == "" || utf8.RuneCountInString(k) > maxTagKey
		longValue = longValue || utf8.RuneCountInString(value) > maxTagVal
	}
	if longKey {
		v.fault(shown(), "tags", "Map keys must satisfy "+sizes(maxTagKey, 1))
	}
	if longValue {
		v.fault(shown(), "tags", "Map value must satisfy "+sizes(maxTagVal, 0))
	}
}

// tagKeys checks the keys of tags to remove.
func (v *validator) tagKeys(keys []string) {
	v.lengthOf(len(keys), func() string { return listed(keys) }, "tagKeys", 1, maxTags)
	for _, k := range keys {
		if k == "" || utf8.RuneCountInString(k) > maxTagKey {
			v.fault(listed(keys), "tagKeys", "Member must satisfy "+sizes(maxTagKey, 1))
			return
		}
	}
}

// listed formats a list like the service does.
func listed(list []string) string { return "[" + strings.Join(list, ", ") + "]" }

package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

type (
	optText = codec.Opt[string]
	optInt  = codec.Opt[int64]
	optBool = codec.Opt[bool]
)

// validator gathers what is wrong with the members of a request, so that one
// answer names it all, in the words the service uses.
type validator struct{ faults []string }

func (v *validator) fault(value any, member, constraint string) {
	shown := "null"
	if value != nil {
		shown = fmt.Sprint(value)
		if len(shown) > 128 {
			shown = strings.ToValidUTF8(shown[:128], "") + "..."
		}
		shown = "'" + shown + "'"
	}
	v.faults = append(v.faults, fmt.Sprintf("Value %s at '%s' failed to satisfy constraint: %s", shown, member, constraint))
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
		v.fault(nil, member, "Member must not be null")
	}
	return set
}

// length counts characters.
func (v *validator) length(s, member string, least, most int) bool {
	n := utf8.RuneCountInString(s)
	switch {
	case n < least:
		v.fault(s, member, fmt.Sprintf("Member must have length greater than or equal to %d", least))
	case n > most:
		v.fault(s, member, fmt.Sprintf("Member must have length less than or equal to %d", most))
	}
	return n >= least && n <= most
}

func (v *validator) pattern(s, member string, re *regexp.Regexp) {
	if !re.MatchString(s) {
		v.fault(s, member, "Member must satisfy regular expression pattern: "+strings.Trim(re.String(), "^$"))
	}
}

func (v *validator) intRange(n optInt, member string, least, most int64) {
	switch {
	case !n.Set:
	case n.V < least:
		v.fault(n.V, member, fmt.Sprintf("Member must have value greater than or equal to %d", least))
	case n.V > most:
		v.fault(n.V, member, fmt.Sprintf("Member must have value less than or equal to %d", most))
	}
}

func (v *validator) enum(s optText, member string, values ...string) {
	if s.Set && !slices.Contains(values, s.V) {
		v.fault(s.V, member, "Member must satisfy enum value set: ["+strings.Join(values, ", ")+"]")
	}
}

var (
	namePattern     = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)
	hashPattern     = regexp.MustCompile(`^(0|[1-9]\d{0,38})$`)
	sequencePattern = regexp.MustCompile(`^(0|[1-9]\d{0,128})$`)
	streamARN       = regexp.MustCompile(`^arn:aws[^:]*:kinesis:[^:]*:\d{12}:stream/[a-zA-Z0-9_.-]+$`)
	consumerARN     = regexp.MustCompile(`^arn:aws[^:]*:kinesis:[^:]*:\d{12}:stream/[a-zA-Z0-9_.-]+/consumer/[a-zA-Z0-9_.-]+:\d+$`)
)

// name checks the name of a stream, shard or consumer, where there is one.
func (v *validator) name(s optText, member string) {
	if s.Set && v.length(s.V, member, 1, 128) {
		v.pattern(s.V, member, namePattern)
	}
}

func (v *validator) requiredName(s optText, member string) {
	if v.required(s.Set, member) {
		v.name(s, member)
	}
}

func (v *validator) streamARN(s optText, member string) {
	if s.Set && v.length(s.V, member, 1, 2048) {
		v.pattern(s.V, member, streamARN)
	}
}

func (v *validator) consumerARN(s optText, member string) {
	if s.Set && v.length(s.V, member, 1, 2048) {
		v.pattern(s.V, member, consumerARN)
	}
}

// tags checks tags that are to be set.
func (v *validator) tags(tags map[string]string, most int) {
	if len(tags) > most {
		v.fault(fmt.Sprintf("(%d tags)", len(tags)), "tags", fmt.Sprintf("Member must have length less than or equal to %d", most))
	}
	for k, value := range tags {
		v.length(k, "tags.key", 1, 128)
		v.length(value, "tags.value", 0, 256)
	}
}

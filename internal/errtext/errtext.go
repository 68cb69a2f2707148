// Package errtext shortens the texts of errors for people. Workers store such texts in their
// heartbeats, and the verdict shows them.
package errtext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unauthorized matches the sentence with which AWS refuses a call for lack of a permission.
var unauthorized = regexp.MustCompile(`User: (\S+) is not authorized to perform: (\S+)` +
	`(?: on (?:the )?resource: (\S+))?`)

// Short returns the text of an error in one line. It replaces the chain of an error of the AWS SDK
// by the service, the operation, the code and the message. It moves what a user may not do before
// the name of the user, which may be long.
func Short(text string) string {
	text = shortNumbers(withoutChain(Line(text)))
	if !strings.Contains(text, " is not authorized to perform: ") {
		return text
	}
	return unauthorized.ReplaceAllStringFunc(text, func(s string) string {
		part := unauthorized.FindStringSubmatch(s)
		if part[3] == "" {
			return "not authorized to perform " + part[2] + " as " + part[1]
		}
		return "not authorized to perform " + part[2] + " on " + part[3] + " as " + part[1]
	})
}

// shortNumbers replaces the middle of numbers that people do not read, such as sequence numbers of
// 56 digits.
func shortNumbers(text string) string {
	const most, first, last = 30, 4, 6
	var b strings.Builder
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		switch {
		case end-at > most:
			b.WriteString(text[at:at+first] + "…" + text[end-last:end])
		case end > at:
			b.WriteString(text[at:end])
		default:
			end++
			b.WriteByte(text[at])
		}
		at = end
	}
	return b.String()
}

// withoutChain replaces the chains of the AWS SDK in a text. Workers call it for each shard that
// fails, with each heartbeat, so it uses no regular expressions.
func withoutChain(text string) string {
	const operation = "operation error "
	before, after, found := strings.Cut(text, operation)
	if !found {
		return withoutAnswer(text)
	}
	service, rest, isChain := strings.Cut(after, ": ")
	call, rest, hasCause := strings.Cut(rest, ", ")
	if !isChain || !hasCause || strings.ContainsAny(service, ",:") || strings.ContainsAny(call, " :") {
		return before + operation + withoutChain(after)
	}
	if tries, is := strings.CutPrefix(rest, "exceeded maximum number of attempts, "); is {
		_, rest, _ = strings.Cut(tries, ", ")
	}
	return before + service + " " + call + ": " + strings.TrimPrefix(withoutChain(rest), "api error ")
}

// withoutAnswer removes what the AWS SDK says about an answer of a service: its status and its ID.
func withoutAnswer(text string) string {
	for _, start := range [...]string{"https response error StatusCode: ", "http response error StatusCode: "} {
		before, rest, found := strings.Cut(text, start)
		if !found {
			continue
		}
		_, rest, _ = strings.Cut(rest, ", ")
		for _, part := range [...]string{"RequestID: ", "HostID: "} {
			if strings.HasPrefix(rest, part) {
				_, rest, _ = strings.Cut(rest, ", ")
			}
		}
		text = before + strings.TrimPrefix(rest, "api error ")
	}
	return text
}

// Denied returns the action that AWS refused for lack of a permission, such as
// "kinesis:GetRecords", and the ARN of the resource. Both are "" if the text does not contain them.
// It accepts a text from [Short] and an original one.
func Denied(text string) (action, resource string) {
	if part := denied.FindStringSubmatch(Short(text)); part != nil {
		return strings.TrimRight(part[1], ".,;…"), strings.TrimRight(part[2], ".,;…")
	}
	return "", ""
}

var denied = regexp.MustCompile(`not authorized to perform:? ([a-z0-9-]+:\w+)(?: on (arn:\S+))?`)

// Unknown reports whether Kinesis does not know the stream or the shard, according to the text of
// an error.
func Unknown(text string) bool {
	return strings.Contains(text, "ResourceNotFoundException") ||
		strings.Contains(text, "the stream does not exist")
}

// Refused reports whether Kinesis refuses the position at which reading should begin, according to
// the text of an error.
func Refused(text string) bool {
	return strings.Contains(text, "the service refuses the position") ||
		strings.Contains(text, "InvalidArgumentException: StartingSequenceNumber")
}

// Answered reports whether an error is an answer of AWS, according to its text, and not a failure
// to reach it.
func Answered(text string) bool { return answer.MatchString(text) }

var answer = regexp.MustCompile(`\b[A-Z]\w+Exception\b|there is no such stream or shard`)

// Line returns a text without line breaks and other characters that cannot be printed.
func Line(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && (r == utf8.RuneError || !unicode.IsPrint(r)) }) &&
		!strings.Contains(text, "  ") {
		return strings.TrimSpace(text)
	}
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
}

// Cut returns at most the given number of bytes of a text. It cuts between two words, and marks the
// cut with "…". It cuts inside a word only if the first word is too long.
func Cut(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	end := max(most-len(mark), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if text[end] != ' ' {
		if space := strings.LastIndexByte(text[:end], ' '); space > 0 {
			end = space
		}
	}
	return strings.TrimRight(text[:end], " ,;:") + mark
}

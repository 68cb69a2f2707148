// Package errtext shortens the texts of errors for people. Workers store such texts in their
// heartbeats, and the verdict shows them.
package errtext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// chain matches the beginning of an error of the AWS SDK, up to the code or the cause.
	chain = regexp.MustCompile(`operation error ([^:,]+): (\w+), ` +
		`(?:exceeded maximum number of attempts, \d+, )?` +
		`(?:https? response error StatusCode: \d*,? ?(?:RequestID: [^,]*, )?(?:HostID: [^,]*, )?)?` +
		`(?:api error )?`)
	// unauthorized matches the sentence with which AWS refuses a call for lack of a permission.
	unauthorized = regexp.MustCompile(`User: (\S+) is not authorized to perform: (\S+)` +
		`(?: on (?:the )?resource: (\S+))?`)
	// answer matches what the SDK says about an answer of the service, outside an operation.
	answer = regexp.MustCompile(`https? response error StatusCode: \d+,? ?` +
		`(?:RequestID: [^,]*, )?(?:HostID: [^,]*, )?(?:api error )?`)
)

// Short returns the text of an error in one line. It replaces the chain of an error of the AWS SDK
// by the service, the operation, the code and the message. It moves what a user may not do before
// the name of the user, which may be long.
func Short(text string) string {
	text = Line(text)
	text = chain.ReplaceAllString(text, "$1 $2: ")
	text = answer.ReplaceAllString(text, "")
	return unauthorized.ReplaceAllStringFunc(text, func(s string) string {
		part := unauthorized.FindStringSubmatch(s)
		if part[3] == "" {
			return "not authorized to perform " + part[2] + " as " + part[1]
		}
		return "not authorized to perform " + part[2] + " on " + part[3] + " as " + part[1]
	})
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

// Line returns a text without line breaks and other characters that cannot be printed.
func Line(text string) string {
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

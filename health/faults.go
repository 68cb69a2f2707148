package health

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/weir-go/weir/internal/errtext"
)

// fault is what the last error of a shard's owner says about Kinesis' answer. It is derived from
// the text, because workers of all versions report only a text.
type fault uint8

const (
	noFault          fault = iota
	faultDenied            // AWS refused a call for lack of a permission
	faultCredentials       // AWS does not accept the credentials
	faultGone              // the stream does not exist
	faultPosition          // Kinesis refuses the position
	faultThrottled         // Kinesis throttles the reads
)

var (
	badCredentials = regexp.MustCompile(`ExpiredToken|UnrecognizedClient|InvalidClientTokenId|` +
		`InvalidAccessKeyId|InvalidSignature|SignatureDoesNotMatch|RequestExpired|` +
		`RequestTimeTooSkewed|MissingAuthenticationToken|IncompleteSignature|get credentials:|` +
		`failed to refresh cached credentials`)
	denied    = regexp.MustCompile(`AccessDenied|[Nn]ot authorized`)
	throttled = regexp.MustCompile(`ProvisionedThroughputExceeded|LimitExceededException|` +
		`Throttling|TooManyRequests|Rate exceeded`)
)

// faultOf returns what the text of an error says.
func faultOf(err string) fault {
	switch {
	case badCredentials.MatchString(err):
		return faultCredentials
	case denied.MatchString(err):
		return faultDenied
	case errtext.Refused(err):
		return faultPosition
	case errtext.Unknown(err):
		return faultGone
	case throttled.MatchString(err):
		return faultThrottled
	}
	return noFault
}

// refusal is a call that AWS refused for lack of a permission. Unknown parts are "".
type refusal struct{ action, resource string }

// refusalOf returns the refused call in the text of an error.
func refusalOf(err string) (r refusal) {
	r.action, r.resource = errtext.Denied(err)
	if r.action == "" {
		if call := calledKinesis.FindStringSubmatch(errtext.Short(err)); call != nil {
			r.action = "kinesis:" + call[1]
		}
	}
	return r
}

var calledKinesis = regexp.MustCompile(`\bKinesis (\w+): `)

// String returns the refused call in words, such as "kinesis:GetRecords on arn:aws:kinesis:…".
func (r refusal) String() string {
	switch {
	case r.action == "":
		return "a call"
	case r.resource == "":
		return r.action
	}
	return r.action + " on " + r.resource
}

// failsWith returns a function that reports whether reading a shard fails with a fault.
func failsWith(f fault) func(*conclusion, *ShardFacts) bool {
	return func(_ *conclusion, s *ShardFacts) bool { return s.Doing.readsOrRetries() && s.fault == f }
}

// These are the rows of the causes that the last error of the owner shows.
var deniedRow = causeRow{
	"denied", "a permission is missing",
	"the owner reports that AWS refused a call for lack of a permission",
	failsWith(faultDenied),
	func(c *conclusion, all []*ShardFacts) string {
		return "AWS refuses " + all[0].refused.String() + " to the owner of " + all[0].Name +
			sinceText(all[0]) + c.lastError(all[0])
	},
	func(c *conclusion, all []*ShardFacts) []Step {
		call := all[0].refused
		if call.action == "" {
			return []Step{
				{"Allow the refused call in the IAM policy of the workers", ""},
				{"See whether this machine may make the call", c.weir("doctor")},
			}
		}
		on := call.resource
		if on == "" {
			on = "the stream " + all[0].Stream
		}
		return []Step{
			{"Allow the action " + call.action + " on " + on + " in the IAM policy of the workers " +
				"(and of its key, if AWS KMS refuses the call)", ""},
			{"See whether this machine may make the call", c.weir("doctor")},
		}
	},
}

var credentialsRow = causeRow{
	"credentials", "AWS does not accept the credentials",
	"the owner reports that its credentials have expired, are wrong or cannot be loaded, or that " +
		"its clock is wrong",
	failsWith(faultCredentials),
	func(c *conclusion, all []*ShardFacts) string {
		return "AWS does not accept the calls of the owner of " + all[0].Name + sinceText(all[0]) +
			c.lastError(all[0])
	},
	func(c *conclusion, all []*ShardFacts) []Step {
		return []Step{
			{"Renew the credentials of the workers, or give their machines a role. A role, a " +
				"profile with a role and SSO are read again without a restart; keys in the " +
				"environment are not", ""},
			{"Check the clock of the workers' machines", ""},
		}
	},
}

var streamGoneRow = causeRow{
	"stream_gone", "the stream does not exist",
	"the owner reports that Kinesis does not know the stream of the shard",
	failsWith(faultGone),
	func(c *conclusion, all []*ShardFacts) string {
		return "Kinesis does not know the stream " + strconv.Quote(all[0].Stream) + sinceText(all[0]) +
			". If it is created again, weir reads it from its beginning" + c.lastError(all[0])
	},
	func(c *conclusion, all []*ShardFacts) []Step {
		stream := quote(all[0].Stream)
		return []Step{
			{"If it should exist, check the account and the region of the workers, or create it",
				fmt.Sprintf("weir stream create --stream %s --shards %d", stream, c.shardsOf(all[0].Stream))},
			{"If it was deleted for good, remove it from Options.Streams of the workers (weir " +
				"consume --stream=" + stream + "), or stop all workers and delete the application " +
				"if it reads no other stream", c.weir("group delete")},
		}
	},
}

var positionRow = causeRow{
	"position_refused", "Kinesis refuses the position",
	"the owner reports that Kinesis refuses the position of the shard",
	failsWith(faultPosition),
	func(c *conclusion, all []*ShardFacts) string {
		s := all[0]
		text := "Kinesis refuses the position of " + s.Name + sinceText(s)
		switch {
		case s.Reason != RecordsExpired:
			text += ": the stream was deleted and created again, or the records at the position " +
				"have expired"
		case s.back.IsZero():
			text += ": the records at the position have expired"
		default:
			text += ": the checkpoint was moved back at about " + clock(s.back) +
				", and the records there have expired"
		}
		return text + c.lastError(s)
	},
	func(c *conclusion, all []*ShardFacts) []Step {
		again := Step{"If the stream was created again, wait a few seconds: the leader discards the " +
			"old progress, and weir reads the new stream from its beginning", ""}
		find := Step{"Find out whether the stream was created again", c.weir("doctor")}
		reset := Step{"If the records have expired, continue at the oldest record",
			c.weir("group reset") + " --stream " + quote(all[0].Stream) + " --shard " +
				quote(all[0].Name) + " --to oldest"}
		if all[0].Reason == RecordsExpired {
			reset.Do = "Records have expired. Continue at the oldest record"
			return []Step{reset, {"Find out why the position is so old, for example because of a " +
				"reset, or because the shard was not read for longer than the retention", ""}}
		}
		return []Step{again, find, reset}
	},
}

// shardsOf returns the number of unfinished shards of a stream.
func (c *conclusion) shardsOf(stream string) (n int) {
	for _, s := range c.open {
		if s.Stream == stream {
			n++
		}
	}
	return n
}

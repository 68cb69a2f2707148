package kinesistest

import "strings"

// unknownOperation explains why the server refuses an action. Users of weir local read this text,
// and may not know this package. The service itself has no text for this error.
func unknownOperation(action string) string {
	const has = " This is a local Kinesis (weir local, kinesistest): it has streams, shards, records, consumers, queues, tags, policies and account settings."
	switch {
	case action == "":
		return ""
	case strings.Contains(action, "Channel"):
		return action + " is not served here: channels deliver to other services, which a local Kinesis does not reach." + has
	}
	return action + " is not a known operation." + has
}

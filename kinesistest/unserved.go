package kinesistest

import "strings"

// unknownOperation explains why an action is refused.
func unknownOperation(action string) string {
	switch {
	case strings.HasSuffix(action, "Channel") || action == "ListChannels":
		return action + " is not served: kinesistest delivers to no other service, so it has no channels."
	case action == "":
		return "X-Amz-Target names no operation."
	}
	return "Kinesis has no operation of this name, or kinesistest does not serve it."
}

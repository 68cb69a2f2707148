package kinesistest

// unknownOperation explains why an action is refused.
func unknownOperation(action string) string {
	switch action {
	case "CreateChannel", "DescribeChannel", "UpdateChannel", "DeleteChannel", "ListChannels":
		return action + " is not served: kinesistest delivers to no other service, so it has no channels."
	case "":
		return "X-Amz-Target names no operation."
	}
	return "Kinesis has no operation of this name, or kinesistest does not serve it."
}

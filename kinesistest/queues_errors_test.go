package kinesistest_test

import "strings"

// queueErrorCases returns wrong calls of the operations of queues. No queue exists. The service's
// texts are not recorded, so only those that follow the model of its API are compared.
func queueErrorCases() []errorCase {
	const (
		arnForm = `Member must satisfy regular expression pattern: arn:aws.*:kinesis:.*:\d{12}:queue/\S+`
		stream  = `"StreamARN":"arn:aws:kinesis:us-east-1:` + account + `:stream/`
		queue   = `"QueueARN":"arn:aws:kinesis:us-east-1:` + account + `:queue/none"`
		create  = `{"QueueName":"q","StreamConfigurationList":[{` + stream + `od"}]`
		most10  = "Member must have length less than or equal to 10"
		atMost  = "Member must have value less than or equal to "
	)
	at := func(position string) string {
		return `{"QueueName":"q","StreamConfigurationList":[{` + stream + `od","StartingPosition":` + position + `}]}`
	}
	cases := []errorCase{
		{"CreateQueue", `{}`, unfit, faults("null", "queueName", notNull, "null", "streamConfigurationList", notNull)},
		{"CreateQueue", `{"QueueName":"a b","StreamConfigurationList":[]}`, unfit, faults("a b", "queueName", nameForm, "[]", "streamConfigurationList", atLeast1)},
		{"CreateQueue", `{"QueueName":"q","StreamConfigurationList":{}}`, mistyped, "Start of structure or map found where not expected."},
		{"CreateQueue", `{"QueueName":"q","StreamConfigurationList":[{},{}]}`, unfit, ""},
		{"CreateQueue", `{"QueueName":"q","StreamConfigurationList":[{` + stream + `od"},{` + stream + `od"}]}`, unfit, ""},
		{"CreateQueue", `{"QueueName":"q","StreamConfigurationList":[{` + stream + `none"}]}`, missing, noStream},
		{"CreateQueue", `{"QueueName":"q","StreamConfigurationList":[{` + stream + `s"}]}`, invalidArgument, ""},
		{"CreateQueue", `{"QueueName":"q","StreamConfigurationList":[{` + stream + `busy"}]}`, taken, ""},
		{"CreateQueue", at(`{}`), unfit, faults("null", "streamConfigurationList.1.member.startingPosition.type", notNull)},
		{"CreateQueue", at(`{"Type":"AT_SEQUENCE_NUMBER"}`), unfit, ""},
		{"CreateQueue", at(`{"Type":"AT_TIMESTAMP"}`), unfit, ""},
		{"CreateQueue", at(`{"Type":"LATEST","Timestamp":1}`), unfit, ""},
		{"CreateQueue", at(`{"Type":"AT_TIMESTAMP","Timestamp":99999999999}`), invalidArgument, ""},
		{"CreateQueue", create + `,"QueueAttributes":{"VisibilityTimeoutSeconds":43201}}`, unfit, faults("43201", "queueAttributes.visibilityTimeoutSeconds", atMost+"43200")},
		{"CreateQueue", create + `,"QueueAttributes":{"DeadLetterConfiguration":{}}}`, unfit, ""},
		{"CreateQueue", create + `,"QueueAttributes":{"DeadLetterConfiguration":{"TargetType":"BUILT_IN"}}}`, unfit, ""},
		{"CreateQueue", create + `,"QueueAttributes":{"DeadLetterConfiguration":{"TargetType":"SQS","MaxReceiveCount":1}}}`, unfit, ""},
		{"CreateQueue", create + `,"QueueAttributes":{"DeadLetterConfiguration":{"TargetType":"BUILT_IN","MaxReceiveCount":1001}}}`, unfit, ""},
		{"CreateQueue", create + `,"Tags":{"a?":"b"}}`, invalidArgument, tagWords},
		{"UpdateQueue", `{` + queue + `}`, unfit, faults("null", "queueAttributes", notNull)},
		{"UpdateQueue", `{` + queue + `,"QueueAttributes":{"VisibilityTimeoutSeconds":-1}}`, unfit, ""},
		{"ListQueues", `{"MaxResults":0}`, unfit, faults("0", "maxResults", from1)},
		{"ListQueues", `{"StreamFilter":[]}`, unfit, faults("[]", "streamFilter", atLeast1)},
		{"ListQueues", `{"StreamFilter":[{}]}`, unfit, faults("null", "streamARN", notNull)},
		{"ListQueues", `{"NextToken":"x"}`, invalidArgument, "NextToken is invalid."},
		{"TagResource", `{"ResourceARN":"arn:aws:kinesis:us-east-1:` + account + `:queue/none","Tags":{"a":"b"}}`, missing, ""},
		{"ListTagsForResource", `{"ResourceARN":"arn:aws:kinesis:us-east-1:` + account + `:channel/none"}`, missing, ""},
	}
	for action, fields := range map[string]string{
		"DescribeQueue": "", "DeleteQueue": "", "UpdateQueue": `,"QueueAttributes":{}`,
		"ReceiveQueueRecords": "", "ReceiveDeadLetterQueueRecords": "",
		"AcknowledgeQueueRecords": handles(""), "AcknowledgeDeadLetterQueueRecords": handles(""), "RestoreDeadLetterQueueRecords": handles(""),
		"UpdateQueueRecordsVisibility": handles(timeout), "UpdateDeadLetterQueueRecordsVisibility": handles(timeout),
	} {
		cases = append(cases,
			errorCase{action, `{"QueueARN":"q"` + fields + `}`, unfit, faults("q", "queueARN", arnForm)},
			errorCase{action, `{` + queue + fields + `}`, missing, ""},
			errorCase{action, `{"QueueARN":[]}`, mistyped, "Start of list found where not expected"},
		)
		switch {
		case strings.HasPrefix(action, "Receive"):
			cases = append(cases,
				errorCase{action, `{` + queue + `,"Limit":11,"WaitTimeSeconds":21,"VisibilityTimeoutSeconds":43201}`, unfit,
					faults("11", "limit", atMost+"10", "21", "waitTimeSeconds", atMost+"20", "43201", "visibilityTimeoutSeconds", atMost+"43200")},
				errorCase{action, `{` + queue + `,"Limit":0,"WaitTimeSeconds":0}`, unfit, faults("0", "limit", from1, "0", "waitTimeSeconds", from1)},
			)
		case strings.Contains(fields, "Entries"):
			cases = append(cases,
				errorCase{action, `{` + queue + `,"Entries":[` + strings.Repeat(`{"ReceiptHandle":"a"`+timeout+`},`, 10) + `{"ReceiptHandle":"a"` + timeout + `}]}`, unfit,
					faults("[11 entries]", "entries", most10)},
				errorCase{action, `{` + queue + `,"Entries":[{"ReceiptHandle":""` + timeout + `}]}`, unfit, faults("", "entries.1.member.receiptHandle", atLeast1)},
				errorCase{action, `{` + queue + `}`, unfit, faults("null", "entries", notNull)},
				errorCase{action, `{` + queue + `,"Entries":[7]}`, mistyped, "Expected null"},
			)
		}
		if strings.HasPrefix(action, "Update") && strings.HasSuffix(action, "Visibility") {
			cases = append(cases, errorCase{action, `{` + queue + handles("") + `}`, unfit, faults("null", "entries.1.member.visibilityTimeoutSeconds", notNull)})
		}
	}
	return cases
}

const timeout = `,"VisibilityTimeoutSeconds":1`

func handles(more string) string { return `,"Entries":[{"ReceiptHandle":"a"` + more + `}]` }

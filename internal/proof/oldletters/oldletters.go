// Package oldletters contains a dead letter in the format of older versions, whose dead letter IDs
// did not contain the application. It is for tests of destinations. It contains only constants,
// because the code that wrote the format no longer exists.
package oldletters

const (
	// App is the application that dead-lettered the record.
	App = "billing"
	// ID is the ID of the dead letter and of its record.
	ID = "orders/shardId-000000000007/49590338271490256608559692538361571095921575989136588898"
	// Text is the dead letter in JSON.
	Text = `{"weir_letter":1,"id":"` + ID + `","stream":"orders","shard":"shardId-000000000007",` +
		`"sequence_number":"49590338271490256608559692538361571095921575989136588898",` +
		`"position":"49590338271490256608559692538361571095921575989136588898","partition_key":"LH123",` +
		`"arrived":"2026-11-23T01:02:03.456Z","data":"cmVjb3JkIDE=","app":"billing","worker":"host-1","epoch":4,` +
		`"given_up":"2026-11-23T01:02:05Z","reason":"attempts","attempts":3,` +
		`"first_failure":"2026-11-23T01:02:04Z","last_failure":"2026-11-23T01:02:05Z",` +
		`"error":"refused","error_type":"*errors.errorString","together":1}`
	// Key is the key of the dead letter in S3, below the prefix.
	Key = ID + ".json"
	// Group is the message group of the dead letter in a FIFO queue.
	Group = "f7cdbad0881ee9cc4c7e899c4152914b4bd7e60146e75b65bb752fa906e87be1"
	// Hash is the SHA-256 of the ID. It is the deduplication ID in a FIFO queue, and the ID in a
	// table.
	Hash = "687deab636eb7984de8e85142634e105e61c8787d292705b41865c23a4643b7e"
)

package deadletter

import (
	"strconv"
	"strings"
)

// QueueShard is the value of Letter.Shard in a dead letter about a record of a Kinesis queue.
const QueueShard = "queue"

// QueueRecord identifies a record of a Kinesis queue.
type QueueRecord struct {
	Queue string // the ARN of the queue
	ID    string // the record ID of the service
	Sub   int    // the number of the record in its aggregate, from 1; 0 for other records
}

// Queue returns the record of a dead letter about a record of a Kinesis queue. ok is false for
// other dead letters. Such a dead letter has the same members as others: the ARN of the queue in
// Stream, [QueueShard] in Shard, and no sequence number. Its Position is the record ID, which is
// followed by "+" and Sub for a record of an aggregate.
func (l *Letter) Queue() (r QueueRecord, ok bool) {
	if l.Shard != QueueShard || !strings.HasPrefix(l.Stream, "arn:") {
		return r, false
	}
	id, sub, packed := strings.Cut(l.Position, "+")
	r = QueueRecord{Queue: l.Stream, ID: id}
	if packed {
		n, err := strconv.Atoi(sub)
		if err != nil || n < 1 {
			return QueueRecord{}, false
		}
		r.Sub = n
	}
	return r, id != ""
}

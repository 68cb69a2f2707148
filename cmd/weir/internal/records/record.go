// Package records selects and prints records. It contains the flags for the start position, for
// filters and for reading, and formats records as lines of text or JSON.
package records

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/queue"
)

// Object is a record in the output of -o json. Each object is on its own line.
type Object struct {
	ID       string `json:"id,omitempty"` // the command repeats it in its answers for --exec-results
	Shard    string `json:"shard"`
	Sequence string `json:"sequence"`
	// Position is the position after this record. It is set if an aggregate has several records
	// with the same sequence number.
	Position string  `json:"position,omitempty"`
	Key      string  `json:"key"`
	Arrival  string  `json:"arrival"`
	Data     *string `json:"data,omitempty"`        // set if the data is UTF-8
	Base64   []byte  `json:"data_base64,omitempty"` // set otherwise
}

// Append appends a record to buf as one line: its data, or a JSON object.
func Append(buf []byte, out cli.Format, shard string, r weir.Record) ([]byte, error) {
	if out != cli.FormatJSON {
		return append(append(buf, r.Data...), '\n'), nil
	}
	return AppendObject(buf, ObjectOf(shard, r.Position().String(), r.ArrivalTime(), r))
}

// ObjectOf converts a record to an Object. position and arrival are data that only weir knows.
func ObjectOf(shard, position string, arrival time.Time, r weir.Record) Object {
	object := Object{Shard: shard, Sequence: r.SequenceNumber, Key: r.PartitionKey, Arrival: arrival.UTC().Format("2006-01-02T15:04:05.000Z07:00")}
	if position != r.SequenceNumber {
		object.Position = position
	}
	if utf8.Valid(r.Data) {
		text := string(r.Data)
		object.Data = &text
	} else {
		object.Base64 = r.Data
	}
	return object
}

func AppendObject(buf []byte, object Object) ([]byte, error) {
	line, err := json.Marshal(object)
	if err != nil {
		return buf, err
	}
	return append(append(buf, line...), '\n'), nil
}

// QueueObject is a record of a queue in the output of -o json. A queue record has no shard and no
// sequence number.
type QueueObject struct {
	ID            string  `json:"id"` // the same for each delivery
	Key           string  `json:"key"`
	Arrival       string  `json:"arrival"`
	FirstReceived string  `json:"first_received"`
	Receives      int     `json:"receives"`              // deliveries, including this one
	Data          *string `json:"data,omitempty"`        // set if the data is UTF-8
	Base64        []byte  `json:"data_base64,omitempty"` // set otherwise
}

// AppendQueue appends a record of a queue to buf as one line: its data, or a JSON object.
func AppendQueue(buf []byte, out cli.Format, r *queue.Record) ([]byte, error) {
	if out != cli.FormatJSON {
		return append(append(buf, r.Data...), '\n'), nil
	}
	const form = "2006-01-02T15:04:05.000Z07:00"
	object := QueueObject{
		ID: r.Key(), Key: r.PartitionKey, Receives: r.ReceiveCount,
		Arrival: r.Arrived.UTC().Format(form), FirstReceived: r.FirstReceived.UTC().Format(form),
	}
	if utf8.Valid(r.Data) {
		text := string(r.Data)
		object.Data = &text
	} else {
		object.Base64 = r.Data
	}
	line, err := json.Marshal(object)
	if err != nil {
		return buf, err
	}
	return append(append(buf, line...), '\n'), nil
}

const AboutBinary = `A newline follows the data of each record. For binary records and records with
newlines use -o json: it prints one object per line, with the shard, the
sequence number, the key, the arrival time, and the data, as "data" if it is
UTF-8 text, otherwise as "data_base64". Packed records are unpacked.`

package multilang

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// generation is the version of the protocol that the library of a program speaks. There is no
// negotiation.
type generation string

const (
	kcl2 generation = "kcl2" // amazon_kclpy 2 and 3, aws-kcl 2
	kcl1 generation = "kcl1" // amazon_kclpy 1, aws-kcl 0
)

// action is the name of a message to the program that it has to answer.
type action string

const (
	initialize        action = "initialize"
	processRecords    action = "processRecords"
	shutdownRequested action = "shutdownRequested"
	leaseLost         action = "leaseLost"
	shardEnded        action = "shardEnded"
	shutdown          action = "shutdown" // of kcl1, in place of leaseLost and shardEnded
)

// message is a message of the program.
type message struct {
	status     bool   // it has finished the action responseFor; otherwise it wants a checkpoint
	response   string // responseFor, "" if it is null
	checkpoint request
}

// request is a request for a checkpoint. A nil field stands for null.
type request struct {
	Sequence *string
	Sub      *int64
}

// decode reads a line of the program's standard output. It returns false if the line is no message
// of the protocol: then it is ordinary output. Unknown fields, and text after the object, are
// ignored.
func decode(line []byte) (message, bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return message{}, false
	}
	var m struct {
		Action      string          `json:"action"`
		ResponseFor *string         `json:"responseFor"`
		Sequence    json.RawMessage `json:"sequenceNumber"`
		Older       json.RawMessage `json:"checkpoint"` // of amazon_kclpy 1.3 and older
		Sub         json.RawMessage `json:"subSequenceNumber"`
	}
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&m); err != nil {
		return message{}, false
	}
	switch m.Action {
	case "status":
		out := message{status: true}
		if m.ResponseFor != nil {
			out.response = *m.ResponseFor
		}
		return out, true
	case "checkpoint":
		if len(m.Sequence) == 0 {
			m.Sequence = m.Older
		}
		sequence, ok := textOf(m.Sequence)
		sub, alsoOK := numberOf(m.Sub)
		return message{checkpoint: request{sequence, sub}}, ok && alsoOK
	}
	return message{}, false
}

// textOf returns a JSON string or number as a text, and nil for null.
func textOf(raw json.RawMessage) (*string, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	s := string(raw)
	if raw[0] == '"' {
		if json.Unmarshal(raw, &s) != nil {
			return nil, false
		}
	} else if strings.IndexByte("-0123456789", raw[0]) < 0 {
		return nil, false
	}
	return &s, true
}

// numberOf returns a JSON number, or a string with one, and nil for null.
func numberOf(raw json.RawMessage) (*int64, bool) {
	s, ok := textOf(raw)
	if !ok || s == nil {
		return nil, ok
	}
	n, err := strconv.ParseInt(*s, 10, 64)
	return &n, err == nil
}

// The functions below write every field, also if it is null, because amazon_kclpy reads fields
// without checking that they exist.

func encodeInitialize(shardID string, from spot) []byte {
	b := appendText(append([]byte(nil), `{"action":"initialize","shardId":`...), shardID)
	b = appendText(append(b, `,"sequenceNumber":`...), from.sequence)
	return fmt.Appendf(b, ",\"subSequenceNumber\":%d}\n", from.sub)
}

// appendRecords appends the line for a batch to b. spots has the place of each record.
func appendRecords(b []byte, batch *weir.Batch, spots []spot) []byte {
	b = append(b, `{"action":"processRecords","records":[`...)
	for i, r := range batch.Records {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"data":"`...)
		b = base64.StdEncoding.AppendEncode(b, r.Data)
		b = appendText(append(b, `","partitionKey":`...), r.PartitionKey)
		b = append(append(b, `,"sequenceNumber":"`...), r.SequenceNumber...)
		b = strconv.AppendInt(append(b, `","approximateArrivalTimestamp":`...), r.ArrivalTime().UnixMilli(), 10)
		b = strconv.AppendInt(append(b, `,"subSequenceNumber":`...), spots[i].sub, 10)
		b = append(b, `,"action":"record"}`...)
	}
	b = append(b, `],"millisBehindLatest":`...)
	if batch.Behind < 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, int64(batch.Behind/time.Millisecond), 10)
	}
	return append(b, "}\n"...)
}

// encodeAnswer returns the answer to a request for a checkpoint. It repeats the request.
func encodeAnswer(r request, failure string) []byte {
	b := []byte(`{"action":"checkpoint","sequenceNumber":`)
	if r.Sequence == nil {
		b = append(b, "null"...)
	} else {
		b = appendText(b, *r.Sequence)
	}
	b = append(b, `,"subSequenceNumber":`...)
	if r.Sub == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, *r.Sub, 10)
	}
	b = append(b, `,"error":`...)
	if failure == "" {
		b = append(b, "null"...)
	} else {
		b = appendText(b, failure)
	}
	return append(b, "}\n"...)
}

// encodeEvent returns the line of an action that has no fields. why is the reason of a shutdown of
// kcl1, and "" otherwise.
func encodeEvent(a action, why string) []byte {
	if a == shutdown {
		return fmt.Appendf(nil, "{\"action\":\"shutdown\",\"reason\":%q}\n", why)
	}
	return fmt.Appendf(nil, "{\"action\":%q}\n", string(a))
}

// ending returns the action that ends a program, and its reason. ended is true if the shard has
// ended.
func (g generation) ending(ended bool) (a action, why string) {
	switch {
	case g == kcl1 && ended:
		return shutdown, "TERMINATE"
	case g == kcl1:
		return shutdown, "ZOMBIE"
	case ended:
		return shardEnded, ""
	}
	return leaseLost, ""
}

// appendText appends a JSON string that contains only ASCII, so that the locale of the program does
// not matter.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= ' ' && r < 0x7f:
			b = append(b, byte(r))
		default:
			units := []rune{r}
			if r > math.MaxUint16 {
				r -= 0x10000
				units = []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
			}
			for _, u := range units {
				b = append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
			}
		}
	}
	return append(b, '"')
}

// spot is a place in a shard in the terms of the KCL: a sequence number and the number of the
// record in its aggregate, or one of the KCL's words in place of the sequence number.
type spot struct {
	sequence string
	sub      int64
}

const (
	trimHorizon = "TRIM_HORIZON"
	latest      = "LATEST"
	atTimestamp = "AT_TIMESTAMP"
	shardEnd    = "SHARD_END"
)

// spotOf returns the place of the last record before p. A position after a whole record does not
// say whether that was the last one of an aggregate, so the number is 0.
func spotOf(p shard.Position) spot {
	switch p.Kind() {
	case shard.First:
		return spot{sequence: trimHorizon}
	case shard.Tip:
		return spot{sequence: latest}
	case shard.Time:
		return spot{sequence: atTimestamp}
	case shard.Finished:
		return spot{sequence: shardEnd}
	}
	if done := p.Done(); done != shard.Whole && done > 0 {
		return spot{p.SequenceNumber(), int64(done) - 1}
	}
	return spot{sequence: p.SequenceNumber()}
}

// rank orders the words of the KCL. It returns false for what is neither a word nor a number.
func rank(sequence string) (int, bool) {
	switch sequence {
	case atTimestamp:
		return 0, true
	case trimHorizon:
		return 1, true
	case latest:
		return 2, true
	case shardEnd:
		return 4, true
	case "":
		return 0, false
	}
	for _, c := range []byte(sequence) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	return 3, true
}

// compare orders two places as the KCL does.
func (s spot) compare(o spot) int {
	a, _ := rank(s.sequence)
	b, _ := rank(o.sequence)
	if a != b {
		return a - b
	}
	if a == 3 {
		if c := shard.CompareSequence(s.sequence, o.sequence); c != 0 {
			return c
		}
	}
	return int(max(-1, min(1, s.sub-o.sub)))
}

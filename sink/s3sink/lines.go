package s3sink

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/weir-go/weir"
)

// envelope is the line for a record in the form Envelopes.
type envelope struct {
	Shard    string  `json:"shard"`
	Sequence string  `json:"sequence"`
	Position string  `json:"position,omitempty"`
	Key      string  `json:"key"`
	Arrival  string  `json:"arrival"`
	Data     *string `json:"data,omitempty"`
	Base64   []byte  `json:"data_base64,omitempty"`
}

// encode returns the content of an object.
func encode(parts []part, form Lines, plain bool) ([]byte, error) {
	var content bytes.Buffer
	if plain {
		err := write(&content, parts, form)
		return content.Bytes(), err
	}
	z, err := gzip.NewWriterLevel(&content, gzip.BestSpeed)
	if err == nil {
		err = write(z, parts, form)
	}
	if err == nil {
		err = z.Close()
	}
	return content.Bytes(), err
}

func write(to io.Writer, parts []part, form Lines) error {
	var line []byte
	for _, p := range parts {
		for i := range p.records {
			var err error
			if line, err = form.Append(line[:0], p.records[i]); err != nil {
				return fmt.Errorf("s3sink: record %s: %w", p.records[i].ID(), err)
			}
			if _, err := to.Write(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// Append appends the line for a record to a buffer, including the newline.
func (l Lines) Append(line []byte, r weir.Record) ([]byte, error) {
	if l == Payloads {
		return appendPayload(line, r.Data)
	}
	e := envelope{Shard: r.Shard(), Sequence: r.SequenceNumber, Key: r.PartitionKey, Arrival: r.ArrivalTime().UTC().Format("2006-01-02T15:04:05.000Z07:00")}
	if at := r.Position().String(); at != r.SequenceNumber {
		e.Position = at
	}
	if utf8.Valid(r.Data) {
		text := string(r.Data)
		e.Data = &text
	} else {
		e.Base64 = r.Data
	}
	return appendJSON(line, e)
}

func appendPayload(line, data []byte) ([]byte, error) {
	switch {
	case !utf8.Valid(data) || !json.Valid(data):
		return appendJSON(line, struct {
			Base64 []byte `json:"data_base64"`
		}{data})
	case bytes.ContainsAny(data, "\n\r"): // a line of JSON must not contain these
		to := bytes.NewBuffer(line)
		err := json.Compact(to, data)
		return append(to.Bytes(), '\n'), err
	}
	return append(append(line, data...), '\n'), nil
}

func appendJSON(line []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(append(line, text...), '\n'), err
}

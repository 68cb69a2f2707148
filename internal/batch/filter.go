package batch

import (
	"strings"

	"github.com/weir-go/weir/internal/source"
)

// Decision is the result of a filter for a record.
type Decision uint8

const (
	Pass        Decision = iota
	Drop                 // the record matches no pattern
	PassNotJSON          // the record is not JSON, and passes
	DropNotJSON          // the record is not JSON, and is dropped
)

// Decider decides whether records pass. It may mark a record that the handler must not get.
type Decider interface {
	Decide(r *source.Record) Decision
}

// Filter filters the records of one page.
type Filter struct {
	By      Decider
	Dropped int // records that match no pattern
	NotJSON int // records that are not JSON

	// kept and dropped are bytes of data since the last call of Detach.
	kept, dropped int
}

// passes reports whether a record passes the filter.
func (f *Filter) passes(r *source.Record) bool {
	if f == nil {
		return true
	}
	decision := f.By.Decide(r)
	switch decision {
	case Drop:
		f.Dropped++
	case PassNotJSON, DropNotJSON:
		f.NotJSON++
	}
	if decision == Drop || decision == DropNotJSON {
		f.dropped += len(r.Data)
		return false
	}
	f.kept += len(r.Data)
	return true
}

// Detach copies the data to which the records of a run refer, if the records are a small part of
// their page. The records then no longer keep the whole page in memory.
func (f *Filter) Detach(run []source.Record) {
	if f == nil {
		return
	}
	small := f.dropped > f.kept
	f.kept, f.dropped = 0, 0
	if small {
		detach(run, extentOf(run))
	}
}

// extent is the number of bytes to which the records of a run refer.
type extent struct{ names, data int }

func extentOf(run []source.Record) (s extent) {
	for i := range run {
		s.names += len(run[i].Key) + len(run[i].SequenceNumber)
		s.data += len(run[i].Data)
	}
	return s
}

// detach makes the records of a run refer to copies. It returns the copy of their data.
func detach(run []source.Record, n extent) (data []byte) {
	var names strings.Builder
	names.Grow(n.names)
	for i := range run {
		names.WriteString(run[i].SequenceNumber)
		names.WriteString(run[i].Key)
	}
	text, data := names.String(), make([]byte, 0, n.data)
	for i := range run {
		r := &run[i]
		number, key := len(r.SequenceNumber), len(r.Key)
		r.SequenceNumber, r.Key, text = text[:number], text[number:number+key], text[number+key:]
		at := len(data)
		data = append(data, r.Data...)
		r.Data = data[at:len(data):len(data)]
	}
	return data
}

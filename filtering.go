package weir

import (
	"time"

	"github.com/weir-go/weir/internal/source"
)

// Filter selects the records that are handled. The others are done as soon as they are read, in
// their order: the checkpoint passes them when everything before them is done. Each read of them
// counts in [Counts].RecordsFiltered and calls [Events].Filtered. Aggregates are unpacked before,
// unless [KeepPacked] is set.
type Filter struct {
	// By decides. Package filter makes one of EventBridge's patterns. nil, the default, handles all
	// records.
	By Matcher
	// NotJSON sets the outcome for a record that is not JSON, if By needs JSON to decide:
	// [PassNotJSON] (the default), [DropNotJSON] or [FailNotJSON].
	NotJSON NotJSON
}

// Matcher decides which records are handled. A *filter.Filter is one.
type Matcher interface {
	// Match reports whether a record is to be handled. isJSON is false if the answer depends on the
	// payload and the payload is not JSON. It is called concurrently, and must neither keep nor
	// change data. It has to give the same answer each time. A panic is a failure of the handler at
	// that record, and Match is called again for the next attempt; a function that pulls gets the
	// record.
	Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool)
}

// NotJSON is the outcome for records that are not JSON, if a [Filter] needs JSON to decide.
// [Counts].RecordsNotJSON counts them for each value.
type NotJSON int

const (
	// PassNotJSON hands them to the handler. The default.
	PassNotJSON NotJSON = iota
	// DropNotJSON drops them, as AWS Lambda does.
	DropNotJSON
	// FailNotJSON does not hand them over. Each counts as a failure of the handler at that record:
	// it is tried again without end, or, if [GiveUp].To is set, given up like a rejected record. It
	// cannot be used with [ShardHandlers].Pull.
	FailNotJSON
)

// check returns what is wrong.
func (f *Filter) check(bad func(format string, args ...any)) {
	switch {
	case f.NotJSON < PassNotJSON || f.NotJSON > FailNotJSON:
		bad("Options.Filter.NotJSON %d must be PassNotJSON, DropNotJSON or FailNotJSON", f.NotJSON)
	case f.By == nil && f.NotJSON != PassNotJSON:
		bad("Options.Filter.By is nil although Options.Filter.NotJSON is set: set the filter")
	}
}

// match asks the user's code. A panic of it is an error.
func (f *Filter) match(r *source.Record) (matches, isJSON bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked("Options.Filter", p)
		}
	}()
	matches, isJSON = f.By.Match(r.Data, r.Key, time.UnixMilli(r.Arrival))
	return matches, isJSON, nil
}

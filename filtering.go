package weir

import "time"

// Filter selects the records that are handled. weir drops the others when it reads them, and the
// checkpoint passes them once all earlier records are done. [Counts].RecordsFiltered counts them
// each time they are read, and [event.Filtered] reports them. weir unpacks aggregates before it
// filters, unless [KeepPacked] is set.
type Filter struct {
	// By decides which records are handled. Package filter makes a Matcher from patterns of
	// EventBridge. With nil, the default, all records are handled.
	By Matcher
	// NotJSON applies to records that are not JSON, if By needs JSON to decide: [PassNotJSON] (the
	// default), [DropNotJSON] or [FailNotJSON].
	NotJSON NotJSON
}

// Matcher decides which records are handled. A *filter.Filter is one.
type Matcher interface {
	// Match reports whether to handle a record. isJSON is false if the answer depends on the
	// payload and the payload is not JSON. weir calls Match concurrently. Match must neither keep
	// nor change data, and must return the same answer each time. A panic counts as a failure of
	// the handler at that record, and weir calls Match again for the next attempt. With
	// [Consumer.RunPull], a record at which Match panics is not filtered: the function that pulls
	// gets it.
	Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool)
}

// NotJSON says how weir treats records that are not JSON, if a [Filter] needs JSON to decide.
// [Counts].RecordsNotJSON counts such records with each value.
type NotJSON int

const (
	// PassNotJSON passes records that are not JSON to the handler. The default.
	PassNotJSON NotJSON = iota
	// DropNotJSON drops records that are not JSON, as AWS Lambda does.
	DropNotJSON
	// FailNotJSON counts each record that is not JSON as a failure of the handler. The handler does
	// not get the record. If [FailurePolicy].Destination is set, weir dead-letters the record, as
	// if the handler had rejected it. Otherwise weir tries the record again without end.
	// FailNotJSON cannot be combined with [Consumer.RunPull] and [Consumer.Records].
	FailNotJSON
)

// check reports invalid values.
func (f *Filter) check(bad badFunc) {
	switch {
	case f.NotJSON < PassNotJSON || f.NotJSON > FailNotJSON:
		bad("Options.Filter.NotJSON", "%d must be PassNotJSON, DropNotJSON or FailNotJSON", f.NotJSON)
	case f.By == nil && f.NotJSON != PassNotJSON:
		bad("Options.Filter.By", "is nil although Options.Filter.NotJSON is set: set the filter")
	}
}

package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// FailedFrom reads a function's answer that reports failures of single records
// (ReportBatchItemFailures). ids are the sequence numbers of the batch, in order. It returns the
// index of the first record that the answer names, where handling must continue. It returns
// len(ids) if the function handled all records. Answers that mean this are: an empty answer, null,
// "", an object without batchItemFailures, and an empty list of failures.
//
// An error means that the whole batch failed. One cause is an item that names no record of the
// batch. Lambda's behaviour is not known for some answers: a number, a list, or text that is not
// JSON. FailedFrom returns an error for these, because a typo must not mark all records as handled.
func FailedFrom(answer []byte, ids []string) (int, error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || isNull(answer) || string(answer) == `""` {
		return len(ids), nil
	}
	// Use a map. A struct would ignore case, but names that differ in case are different.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return 0, fmt.Errorf("lambda: the function's answer is not a JSON object: %.100q", answer)
	}
	list, found := members["batchItemFailures"]
	if !found || isNull(list) {
		return len(ids), nil
	}
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return 0, fmt.Errorf("lambda: batchItemFailures is not a list of objects: %.100q", list)
	}
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		if _, before := at[id]; !before { // several records of one aggregate can have the same number
			at[id] = i
		}
	}
	first := len(ids)
	for _, item := range items {
		var id *string
		raw, found := item["itemIdentifier"]
		if !found {
			return 0, errors.New("lambda: an item of batchItemFailures has no itemIdentifier")
		}
		if err := json.Unmarshal(raw, &id); err != nil || id == nil || *id == "" {
			return 0, fmt.Errorf("lambda: an itemIdentifier is not the sequence number of a record: %.100q", raw)
		}
		i, known := at[*id]
		if !known {
			return 0, fmt.Errorf("lambda: itemIdentifier %.140q is not the sequence number of a record of the batch", *id)
		}
		first = min(first, i)
	}
	return first, nil
}

func isNull(raw []byte) bool { return string(raw) == "null" }

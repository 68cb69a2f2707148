package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// FailedFrom returns the index of the record with which handling continues after a function's
// answer with failures of single records (ReportBatchItemFailures). ids are the records' sequence
// numbers, in order. The result is the index of the first record that the answer names. It is
// len(ids) if all are done: after an empty answer, null, "", an object without batchItemFailures,
// or an empty list. An error means that the whole batch failed, for example because an item names
// no record of the batch.
//
// Lambda's behaviour for other answers (a number, a list, text that is not JSON) is not known. They
// count as failures here, because a typo must not mean that all is done.
func FailedFrom(answer []byte, ids []string) (int, error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || isNull(answer) || string(answer) == `""` {
		return len(ids), nil
	}
	// A map, because names that differ only in case are different names.
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
		if _, before := at[id]; !before { // records of one aggregate share a number
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

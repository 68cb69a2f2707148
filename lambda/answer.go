package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// FailedFrom reads a function's answer that reports failures of single records
// (ReportBatchItemFailures). ids are the sequence numbers of the batch, in order. It returns the
// index of the first record that the answer names, where handling must continue. It returns
// len(ids) if the function handled all records. Answers that mean this are: an empty answer, null,
// "", an object without batchItemFailures or with null for it, and an empty list of failures.
//
// Lambda's behaviour for other answers (a number, a list, text that is not JSON) is not known. They
// count as failures here, because a typo must not mean that all is done. For the same reason a list
// under a name that is almost batchItemFailures is an error, although Lambda ignores it.
func FailedFrom(answer []byte, ids []string) (int, error) {
	failed, err := failedItems(answer, ids)
	switch {
	case err != nil:
		return 0, err
	case len(failed) == 0:
		return len(ids), nil
	}
	return slices.Min(failed), nil
}

// failedItems returns the indexes of the records that an answer names.
func failedItems(answer []byte, ids []string) (failed []int, err error) {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 || isNull(answer) || string(answer) == `""` {
		return nil, nil
	}
	// Use a map. A struct would ignore case, but names that differ in case are different.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return nil, fmt.Errorf("lambda: the function's answer is not a JSON object: %.100q", answer)
	}
	list, found := members["batchItemFailures"]
	if !found {
		if name := misspelled(members); name != "" {
			return nil, fmt.Errorf("lambda: the function's answer has %.100q, which Lambda ignores: "+
				"the name is batchItemFailures", name)
		}
		return nil, nil
	}
	if isNull(list) {
		return nil, nil
	}
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return nil, fmt.Errorf("lambda: batchItemFailures is not a list of objects: %.100q", list)
	}
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		if _, before := at[id]; !before { // several records of one aggregate can have the same number
			at[id] = i
		}
	}
	for _, item := range items {
		var id *string
		raw, found := item["itemIdentifier"]
		if !found {
			return nil, errors.New("lambda: an item of batchItemFailures has no itemIdentifier")
		}
		if err := json.Unmarshal(raw, &id); err != nil || id == nil || *id == "" {
			return nil, fmt.Errorf("lambda: an itemIdentifier is not the sequence number of a record: %.100q", raw)
		}
		i, known := at[*id]
		if !known {
			return nil, fmt.Errorf("lambda: itemIdentifier %.140q is not the sequence number of a record of the batch", *id)
		}
		failed = append(failed, i)
	}
	return failed, nil
}

// misspelled returns the name of a member that looks like batchItemFailures and is not empty, or
// "".
func misspelled(members map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch value := string(members[name]); {
		case isNull(members[name]) || strings.Trim(value, "[]{} \t\r\n") == "":
		case len(name) <= 2*len(failuresName) && distance(letters(name), failuresName) <= 2:
			return name
		}
	}
	return ""
}

// failuresName is batchItemFailures as letters returns it.
const failuresName = "batchitemfailures"

// letters returns a name in lower case, without anything but letters.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// distance returns how many letters must be changed, added or removed to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			same := before
			if a[i] != b[j] {
				same++
			}
			before = row[j+1]
			row[j+1] = min(same, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

func isNull(raw []byte) bool { return string(raw) == "null" }

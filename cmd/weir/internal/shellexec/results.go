package shellexec

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// answer is the result of one record, as the command reported it.
type answer uint8

const (
	saidNothing answer = iota
	saidDone
	saidFailed
	saidRejected
)

var answerNames = map[string]answer{"done": saidDone, "failed": saidFailed, "rejected": saidRejected}

const (
	mostResultLine = 64 << 10
	mostResultText = 4 << 10 // maximum length of an error in a dead letter
)

// results contains the results that a command reported for the records of its batch. They count
// only if all lines up to the end line are valid.
type results struct {
	ids    map[string]int // index of each record by its ID
	of     []answer
	texts  []string // errors of failed and rejected records
	failed int      // lowest index of a record reported as failed or rejected; len(of) if there is none
	text   string   // error text of that record
	lines  int
	ended  bool
	broken error // why the results do not count
}

func newResults(ids []string) *results {
	a := &results{ids: make(map[string]int, len(ids)), of: make([]answer, len(ids)), texts: make([]string, len(ids)), failed: len(ids)}
	for i, id := range ids {
		a.ids[id] = i
	}
	return a
}

// read reads lines until the end line, an invalid line, or the end of r. It keeps only one line in
// memory.
func (a *results) read(r io.Reader) {
	lines := bufio.NewReaderSize(r, mostResultLine)
	for !a.ended && a.broken == nil {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			a.lines++
			a.broken = fmt.Errorf("line %d is longer than %d KiB", a.lines, mostResultLine>>10)
			return
		}
		if len(line) > 0 {
			a.lines++
			if bad := a.line(line); bad != nil {
				a.broken = fmt.Errorf("line %d: %w", a.lines, bad)
			}
		}
		if err != nil {
			return
		}
	}
}

// line processes one line.
func (a *results) line(line []byte) error {
	l, err := parseResult(line)
	if err != nil || l.end {
		a.ended = err == nil
		return err
	}
	i, known := a.ids[l.id]
	switch {
	case !known:
		return fmt.Errorf("the batch has no record with the id %.140q", l.id)
	case a.of[i] == saidNothing:
		a.of[i], a.texts[i] = l.answer, l.text
	case a.of[i] != l.answer:
		return fmt.Errorf("a second answer for the record %.140q, and another one", l.id)
	}
	if l.answer != saidDone && i < a.failed {
		a.failed, a.text = i, l.text
	}
	return nil
}

// batchOutcome is the outcome of a batch.
type batchOutcome struct {
	done     int  // number of handled records, from the first one on
	named    bool // the first unhandled record failed; if false, the failed record is unknown
	rejected bool // the failed record can never succeed
	err      error
}

// outcome combines the results with the error of a command that did not exit with 0. A record
// without a result is not handled.
func (a *results) outcome(exit error) batchOutcome {
	if err := a.unusable(exit); err != nil {
		return batchOutcome{err: err}
	}
	done := 0
	for done < len(a.of) && a.of[done] == saidDone {
		done++
	}
	if done == len(a.of) {
		return batchOutcome{done: done, err: exit}
	}
	// A command that failed may be wrong about which records can never succeed.
	o := batchOutcome{done: done, named: true, rejected: a.of[done] == saidRejected && exit == nil}
	o.err = withExit(failureText(a.of[done], a.text), exit)
	return o
}

// unusable returns an error if the results do not count.
func (a *results) unusable(exit error) error {
	switch {
	case a.broken != nil:
		return withExit(fmt.Sprintf("the command wrote invalid results, so no record of the batch counts as done: %v", a.broken), exit)
	case !a.ended && a.lines == 0 && exit != nil:
		return exit
	case !a.ended && a.lines == 0:
		return errors.New("the command wrote no results, so no record of the batch counts as done")
	case !a.ended:
		return withExit(`the command's results lack the line {"end":true}, so no record of the batch counts as done`, exit)
	}
	return nil
}

// each returns the error of each record, for records that do not depend on each other.
func (a *results) each(exit error) []error {
	all := make([]error, len(a.of))
	whole := a.unusable(exit)
	for i, said := range a.of {
		switch {
		case whole != nil:
			all[i] = whole
		case said == saidDone:
		case said == saidRejected && exit == nil:
			all[i] = weir.Reject(errors.New(failureText(said, a.texts[i])))
		default:
			all[i] = withExit(failureText(said, a.texts[i]), exit)
		}
	}
	return all
}

// failureText returns the error text of a record that was not reported as done.
func failureText(said answer, text string) string {
	switch {
	case said == saidNothing:
		return "the command wrote no result for the record"
	case text != "":
		return text
	case said == saidRejected:
		return "the command rejected the record"
	}
	return "the command failed at the record"
}

func withExit(text string, exit error) error {
	if exit == nil {
		return errors.New(text)
	}
	return fmt.Errorf("%s; %w", text, exit)
}

// resultLine is a parsed line of results.
type resultLine struct {
	id     string
	answer answer
	text   string
	end    bool
}

// parseResult parses a line. It accepts exactly the documented form. Success must be reported
// explicitly, and a misspelt name must not count as success.
func parseResult(line []byte) (l resultLine, err error) {
	if !json.Valid(line) {
		return l, fmt.Errorf("%.140q is not JSON", bytes.TrimRight(line, "\r\n"))
	}
	in := json.NewDecoder(bytes.NewReader(line))
	if t, _ := in.Token(); t != json.Delim('{') {
		return l, errors.New("it is no JSON object")
	}
	seen := map[string]any{}
	for in.More() {
		name, _ := in.Token()
		value, _ := in.Token()
		key, _ := name.(string)
		if _, twice := seen[key]; twice {
			return l, fmt.Errorf("%.140q is there twice", key)
		}
		seen[key] = value
		ok := false
		switch key {
		case "id":
			l.id, ok = value.(string)
		case "result":
			said, _ := value.(string)
			if l.answer, ok = answerNames[said]; !ok {
				return l, fmt.Errorf(`"result" %.140q: use "done", "failed" or "rejected"`, fmt.Sprint(value))
			}
		case "error":
			l.text, ok = value.(string)
			ok = ok || value == nil
		case "end":
			l.end, ok = value.(bool)
			ok = ok && l.end
		default:
			return l, fmt.Errorf(`unknown field %.140q: want "id", "result", "error" or "end"`, key)
		}
		if !ok {
			return l, fmt.Errorf("%q has a value that it cannot have", key)
		}
	}
	switch {
	case l.end && len(seen) > 1:
		return l, errors.New(`"end" stands alone in its line`)
	case l.end:
	case seen["id"] == nil || l.answer == saidNothing:
		return l, errors.New(`it needs "id" and "result"`)
	case l.answer == saidDone && l.text != "":
		return l, errors.New(`"done" with an "error"`)
	}
	if len(l.text) > mostResultText {
		l.text = strings.ToValidUTF8(l.text[:mostResultText], "") + "…"
	}
	l.text = cli.Visible(l.text)
	return l, nil
}

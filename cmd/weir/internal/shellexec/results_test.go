package shellexec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var errExit = errors.New("the command failed: exit status 1")

// These are the outcomes of a batch with the records a, b and c for different results of the
// command.
func TestWhatResultsMean(t *testing.T) {
	const end = `{"end":true}` + "\n"
	say := func(id, result string) string { return fmt.Sprintf(`{"id":%q,"result":%q}`+"\n", id, result) }
	done := say("a", "done") + say("b", "done") + say("c", "done")
	void := func(text string) batchOutcome { return batchOutcome{err: errors.New(text)} }
	at := func(done int, rejected bool, text string) batchOutcome {
		return batchOutcome{done, true, rejected, errors.New(text)}
	}
	for _, c := range []struct {
		name string
		text string
		exit error
		want batchOutcome
	}{
		{"all done", done + end, nil, batchOutcome{done: 3}},
		{"all done, in any order, with spaces, without a last newline", say("c", "done") + "\t { \"result\" : \"done\", \"error\":null, \"id\":\"a\" } \r\n" + say("b", "done") + `{"end":true}`, nil, batchOutcome{done: 3}},
		{"an answer that is repeated", say("a", "done") + done + end, nil, batchOutcome{done: 3}},
		{"one fails", say("a", "done") + `{"id":"b","result":"failed","error":"no\u001b[1m room"}` + "\n" + say("c", "done") + end, nil, at(1, false, `no\x1b[1m room`)},
		{"one is rejected", say("a", "done") + `{"id":"b","result":"rejected","error":"bad"}` + "\n" + end, nil, at(1, true, "bad")},
		{"one fails without a word", say("a", "failed") + end, nil, at(0, false, "the command failed at the record")},
		{"one is rejected without a word", say("a", "rejected") + end, nil, at(0, true, "the command rejected the record")},
		{"the lowest counts", say("c", "rejected") + say("b", "failed") + say("a", "done") + end, nil, at(1, false, "the command failed at the record")},
		{"a record that is not named is not done, nor what follows it", say("a", "done") + say("c", "failed") + end, nil, at(1, false, "the command wrote no result for the record")},
		{"nothing is named", end, nil, at(0, false, "the command wrote no result for the record")},
		{"what follows the end is not read", say("a", "done") + end + "x\n" + say("b", "done"), nil, at(1, false, "the command wrote no result for the record")},

		{"exit code, all done", done + end, errExit, batchOutcome{done: 3, err: errExit}},
		{"exit code, one fails", say("a", "done") + `{"id":"b","result":"failed","error":"no"}` + "\n" + end, errExit, at(1, false, "no; "+errExit.Error())},
		{"exit code, one is rejected: it may be wrong about that", say("a", "rejected") + end, errExit, at(0, false, "the command rejected the record; "+errExit.Error())},
		{"exit code and no results", "", errExit, void(errExit.Error())},

		{"no results", "", nil, void("the command wrote no results, so no record of the batch counts as done")},
		{"no end", done, nil, void(`the command's results lack the line {"end":true}, so no record of the batch counts as done`)},
		{"no end, exit code", done, errExit, void(`the command's results lack the line {"end":true}, so no record of the batch counts as done; ` + errExit.Error())},
		{"a line that is cut off", done + `{"id":"c","resu`, nil, broken(4, `"{\"id\":\"c\",\"resu" is not JSON`)},
		{"an id that is not in the batch", done + say("d", "done") + end, nil, broken(4, `the batch has no record with the id "d"`)},
		{"two answers", say("a", "failed") + done + end, nil, broken(2, `a second answer for the record "a", and another one`)},
		{"words", "ok\n" + end, nil, broken(1, `"ok" is not JSON`)},
		{"an empty line", "\n" + end, nil, broken(1, `"" is not JSON`)},
		{"a list", "[]\n" + end, nil, broken(1, `it is no JSON object`)},
		{"a value", "\"done\"\n" + end, nil, broken(1, `it is no JSON object`)},
		{"an empty object", "{}\n" + end, nil, broken(1, `it needs "id" and "result"`)},
		{"no id", `{"result":"done"}` + "\n" + end, nil, broken(1, `it needs "id" and "result"`)},
		{"no result", `{"id":"a"}` + "\n" + end, nil, broken(1, `it needs "id" and "result"`)},
		{"a result in other words", say("a", "ok") + end, nil, broken(1, `"result" "ok": use "done", "failed" or "rejected"`)},
		{"a result in capitals", say("a", "Done") + end, nil, broken(1, `"result" "Done": use "done", "failed" or "rejected"`)},
		{"a result that is no text", `{"id":"a","result":true}` + "\n" + end, nil, broken(1, `"result" "true": use "done", "failed" or "rejected"`)},
		{"a name in capitals", `{"ID":"a","result":"done"}` + "\n" + end, nil, broken(1, `unknown field "ID": want "id", "result", "error" or "end"`)},
		{"a name that is there twice", `{"id":"a","id":"b","result":"done"}` + "\n" + end, nil, broken(1, `"id" is there twice`)},
		{"an id that is a number", `{"id":1,"result":"done"}` + "\n" + end, nil, broken(1, `"id" has a value that it cannot have`)},
		{"an id that is an object", `{"id":{"id":"a"},"result":"done"}` + "\n" + end, nil, broken(1, `"id" has a value that it cannot have`)},
		{"an error that is a list", `{"id":"a","error":["b"],"result":"failed"}` + "\n" + end, nil, broken(1, `"error" has a value that it cannot have`)},
		{"done with an error", `{"id":"a","error":"b","result":"done"}` + "\n" + end, nil, broken(1, `"done" with an "error"`)},
		{"two lines in one", `{"id":"a","result":"done"}{"id":"b","result":"done"}` + "\n" + end, nil, broken(1, `"{\"id\":\"a\",\"result\":\"done\"}{\"id\":\"b\",\"result\":\"done\"}" is not JSON`)},
		{"the end is not", done + `{"end":false}` + "\n", nil, broken(4, `"end" has a value that it cannot have`)},
		{"the end with more", say("a", "done") + `{"end":true,"id":"b","result":"done"}` + "\n", nil, broken(2, `"end" stands alone in its line`)},
		{"a line that is too long", done + `{"id":"a","result":"failed","error":"` + strings.Repeat("x", mostResultLine) + `"}` + "\n" + end, nil, broken(4, "line 4 is longer than 64 KiB")},
		{"broken and an exit code", "ok\n", errExit, void(broken(1, `"ok" is not JSON`).err.Error() + "; " + errExit.Error())},
	} {
		for kind, r := range map[string]io.Reader{"at once": strings.NewReader(c.text), "byte by byte": iotest.OneByteReader(strings.NewReader(c.text))} {
			said := newResults([]string{"a", "b", "c"})
			said.read(r)
			got := said.outcome(c.exit)
			if shown(got) != shown(c.want) {
				t.Errorf("%s, %s:\n%s, want\n%s", c.name, kind, shown(got), shown(c.want))
			}
			if c.exit != nil && !errors.Is(got.err, errExit) {
				t.Errorf("%s: the exit code is not in %v", c.name, got.err)
			}
		}
	}
}

func broken(line int, text string) batchOutcome {
	if !strings.HasPrefix(text, "line ") {
		text = fmt.Sprintf("line %d: %s", line, text)
	}
	return batchOutcome{err: errors.New("the command wrote invalid results, so no record of the batch counts as done: " + text)}
}

func shown(o batchOutcome) string {
	return fmt.Sprintf("%d done, named %v, rejected %v: %v", o.done, o.named, o.rejected, o.err)
}

// The length of an error is limited for any output of a command.
func TestAResultsErrorIsBounded(t *testing.T) {
	said := newResults([]string{"a"})
	said.read(strings.NewReader(`{"id":"a","result":"failed","error":"` + strings.Repeat("é", 30_000) + "\"}\n" + `{"end":true}`))
	if o := said.outcome(nil); !o.named || len(o.err.Error()) != mostResultText+len("…") {
		t.Errorf("%v, %d bytes", o.named, len(o.err.Error()))
	}
}

// FuzzResults checks that no record counts as done without a line for it and an end line, and that
// the outcome does not depend on how the output is split into reads.
func FuzzResults(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","result":"done"}` + "\n" + `{"id":"b","result":"failed","error":"x"}` + "\n" + `{"end":true}` + "\n",
		`{"end":true}`, `{"id":"a","result":"done","error":null}` + "\r\n", "\n\n", `{"id":"b","result":"rejected"}` + "\n" + `{"end" :true }`, "{\"id\":\"\xff\"}",
	} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, exited bool) {
		var exit error
		if exited {
			exit = errExit
		}
		ids := []string{"a", "b"}
		said, slowly := newResults(ids), newResults(ids)
		said.read(bytes.NewReader(text))
		slowly.read(iotest.OneByteReader(bytes.NewReader(text)))
		o := said.outcome(exit)
		if again := slowly.outcome(exit); shown(o) != shown(again) {
			t.Fatalf("%s at once and %s byte by byte", shown(o), shown(again))
		}
		if o.done < len(ids) && o.err == nil || o.done < 0 || o.done > len(ids) || o.named && o.done == len(ids) || o.rejected && (!o.named || exited) {
			t.Fatalf("%+v", o)
		}
		if o.done+btoi(o.named) > 0 && !bytes.Contains(text, []byte("end")) && !bytes.Contains(text, []byte(`\u`)) {
			t.Fatalf("%+v without an end", o)
		}
		if bytes.Count(text, []byte("\n")) < o.done { // each result is on a separate line
			t.Fatalf("%d done in %q", o.done, text)
		}
		if o.done > bytes.Count(text, []byte("done")) && !bytes.Contains(text, []byte(`\u`)) {
			t.Fatalf("%d done in %q", o.done, text)
		}
		if o.err != nil && len(o.err.Error()) > 4*mostResultText+1000 {
			t.Fatalf("an error of %d bytes", len(o.err.Error()))
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

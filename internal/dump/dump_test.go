package dump

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func example(t testing.TB) File {
	position := func(s string) shard.Position {
		p, err := shard.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := shard.HashRange{End: shard.MaxHashKey}
	v := lease.View{
		Paused: []string{"", "clicks"},
		Leases: []lease.Lease{
			{Key: lease.Key{Stream: "s", Shard: "2"}, Parents: []string{"0", "1"}, Range: all, Epoch: 1, Position: shard.Oldest},
			{Key: lease.Key{Stream: "s", Shard: "0"}, Range: all, Epoch: 9, Owner: "S1", Heir: "S2", Last: "S1", Position: position("49590338271490256608559692538361571095921575989136588898"), Load: 12, Born: 1767323045000},
			{Key: lease.Key{Stream: "s", Shard: "1"}, Range: all, Epoch: 3, Revoked: "S3", Shunned: "S4", Position: position("4959+3")},
			{Key: lease.Key{Stream: "r", Shard: "<0>"}, Range: all, Epoch: 2, Position: shard.End},
			{Key: lease.Key{Stream: "r", Shard: "1"}, Range: all, Epoch: 2, Position: position("2026-01-02T03:04:05.678Z")},
		},
	}
	return Of("billing", v)
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := example(t)
	var b bytes.Buffer
	if err := Write(&b, want); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	got, err := Read(strings.NewReader(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, got\n%+v\nwant\n%+v", err, got, want)
	}
	for _, session := range []string{"S1", "S2", "S3", "S4"} {
		if strings.Contains(text, session) {
			t.Errorf("the session %s is in the file: it means nothing elsewhere", session)
		}
	}
	if !strings.HasPrefix(text, `{"weir":"progress","version":1,"app":"billing","leases":5,"paused":["","clicks"]}`+"\n"+`{"stream":"r","shard":"1",`) {
		t.Errorf("written as %s", text)
	}
	// Editors may add Windows line ends, and empty lines at the end.
	if got, err := Read(strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n") + "\n\n")); err != nil || len(got.Leases) != 5 {
		t.Errorf("with other line ends: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	const (
		head = `{"weir":"progress","version":1,"app":"a","leases":1}` + "\n"
		good = `{"stream":"s","shard":"0","range":["0","9"],"epoch":1,"position":"oldest"}` + "\n"
	)
	if _, err := Read(strings.NewReader(head + good)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                       {"", "not what"},
		"another file":                  {"hello\n", "not what"},
		"another JSON":                  {`{"a":1}` + "\n", "not what"},
		"a later version":               {`{"weir":"progress","version":2,"app":"a","leases":0}`, "version 2"},
		"an app without name":           {`{"weir":"progress","version":1,"leases":0}`, "application's name"},
		"leases below zero":             {`{"weir":"progress","version":1,"app":"a","leases":-1}`, "-1 leases"},
		"an invalid paused stream":      {`{"weir":"progress","version":1,"app":"a","leases":0,"paused":["\u0000"]}`, "line 1"},
		"a file that was cut off":       {head, "cut off"},
		"half a lease":                  {head + good[:30], "line 2: it is not a lease"},
		"more than announced":           {head + good + good, "line 3: there is more"},
		"a lease twice":                 {strings.Replace(head, ":1}", ":2}", 1) + good + good, "line 3: the lease s/0 is there already, in line 2"},
		"two leases in a line":          {head + strings.TrimSpace(good) + good, "after the lease"},
		"an unknown field":              {head + strings.Replace(good, "epoch", "epock", 1), "epock"},
		"no position":                   {head + strings.Replace(good, "oldest", "", 1), "no position"},
		"an invalid position":           {head + strings.Replace(good, "oldest", "newest", 1), "newest"},
		"no epoch":                      {head + strings.Replace(good, `"epoch":1,`, "", 1), "epoch"},
		"an epoch beyond all":           {head + strings.Replace(good, `"epoch":1`, `"epoch":9223372036854775808`, 1), "above 2^62"},
		"an epoch that cannot grow":     {head + strings.Replace(good, `"epoch":1`, `"epoch":9223372036854775807`, 1), "could not change hands"},
		"a stream that is no name":      {head + strings.Replace(good, `"stream":"s"`, `"stream":"s\u001b[2J"`, 1), "control character"},
		"a shard of two lines":          {head + strings.Replace(good, `"shard":"0"`, `"shard":"0\n1"`, 1), "control character"},
		"no stream":                     {head + strings.Replace(good, `"stream":"s"`, `"stream":""`, 1), "stream"},
		"a range that runs backwards":   {head + strings.Replace(good, `["0","9"]`, `["9","0"]`, 1), "ends before it starts"},
		"no range":                      {head + strings.Replace(good, `["0","9"]`, `[]`, 1), "hash key"},
		"a load beyond all":             {head + strings.Replace(good, `"epoch":1`, `"epoch":1,"load":81`, 1), "81"},
		"a birth before all time":       {head + strings.Replace(good, `"epoch":1`, `"epoch":1,"born":-1`, 1), "Born"},
		"three parents":                 {head + strings.Replace(good, `"epoch":1`, `"epoch":1,"parents":["1","2","3"]`, 1), "3 parents"},
		"a line longer than any can be": {head + strings.Repeat(" ", maxLine) + good, "line 2 is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want something with %q", err, c.want)
			}
			if len(f.Leases) > 0 {
				t.Error("leases came with the error")
			}
		})
	}
}

// FuzzRead checks that no input makes the reader panic. An accepted dump must be the same after it
// is written and read again.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, example(f)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"weir":"progress","version":1,"app":"a","leases":1}` + "\n" + `{"stream":"s","shard":"0","range":["0","9"],"epoch":1,"position":"17+4294967295"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, first); err != nil {
			t.Fatal(err)
		}
		second, err := Read(&again)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		for i := range first.Leases { // nil and empty slices are equivalent
			if len(first.Leases[i].Parents) == 0 {
				first.Leases[i].Parents = nil
			}
		}
		if len(first.Paused) == 0 {
			first.Paused = nil
		}
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%+v became %+v", first, second)
		}
	})
}

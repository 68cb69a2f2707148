package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/weir-go/weir/lease"
)

// historian returns the store as a [lease.Historian]. If the store is not one, for example because
// a wrapper hides it, historian skips the case.
func (e *env) historian() lease.Historian {
	e.Helper()
	h, ok := e.store.(lease.Historian)
	if !ok {
		e.Skip("the store is not a lease.Historian")
	}
	return h
}

// put stores a chunk that contains bytes that are not UTF-8.
func (e *env) put(session string, since int64, data string) {
	e.Helper()
	if err := e.historian().PutHistory(e.ctx, e.app, lease.HistoryChunk{Session: session, Since: since, Data: odd(data)}); err != nil {
		e.Fatalf("PutHistory(%s, %d): %v", session, since, err)
	}
}

func odd(data string) []byte { return append([]byte{0, 0xff, '\'', 0x80}, data...) }

// chunks checks that the store has exactly these chunks from a minute on. They have the form
// "session minute data".
func (e *env) chunks(since int64, want ...string) {
	e.Helper()
	chunks, err := e.historian().History(e.ctx, e.app, since)
	if err != nil {
		e.Fatalf("History(%d): %v", since, err)
	}
	var got []string
	for _, c := range chunks {
		data, whole := bytes.CutPrefix(c.Data, odd(""))
		if !whole {
			e.Errorf("the chunk of %s at %d has other bytes: %q", c.Session, c.Since, c.Data)
		}
		got = append(got, fmt.Sprintf("%s %d %s", c.Session, c.Since, data))
	}
	if a, b := strings.Join(got, ", "), strings.Join(want, ", "); a != b {
		e.Errorf("chunks since %d are %s; want %s", since, a, b)
	}
}

// kept is the number of minutes for which chunks are kept.
const kept = int64(lease.HistoryKept / 60e9)

// chunkCases test [lease.Historian].
var chunkCases = []testCase{
	needs(lease.KeepHistory, testCase{"chunks are kept as they are, by minute and session", func(e *env) {
		e.chunks(0)
		e.put("b", 100, "one")
		e.put("a", 101, "two")
		e.put("a", 99, "three")
		e.put("a", 100, "four")
		e.chunks(0, "a 99 three", "a 100 four", "b 100 one", "a 101 two")
		e.chunks(100, "a 100 four", "b 100 one", "a 101 two")
		e.chunks(102)
		e.through(e.other).chunks(101, "a 101 two")
		e.in(e.app + "-other").chunks(0)
	}}),
	needs(lease.KeepHistory, testCase{"a chunk replaces the one of the same session and minute", func(e *env) {
		e.put("a", 100, "x")
		e.put("b", 100, "y")
		e.put("a", 100, "xx")
		e.put("a", 100, "xx")
		e.chunks(0, "a 100 xx", "b 100 y")
	}}),
	needs(lease.KeepHistory, testCase{"chunks that have expired are removed with others that come", func(e *env) {
		e.put("a", 100, "old")
		e.put("a", 101, "older")
		e.put("a", 100+kept, "new")
		e.chunks(0, "a 100 old", "a 101 older", fmt.Sprint("a ", 100+kept, " new"))
		e.put("a", 101+kept, "new")
		e.chunks(0, "a 101 older", fmt.Sprint("a ", 100+kept, " new"), fmt.Sprint("a ", 101+kept, " new"))
		for i := range int64(30) { // chunks of sessions that are gone
			e.put(fmt.Sprint("gone-", i), 110, "")
		}
		for i := range int64(30) { // they may be removed step by step
			e.put("a", 200+kept+i, "")
		}
		chunks, err := e.historian().History(e.ctx, e.app, 0)
		if err != nil {
			e.Fatal(err)
		}
		for _, c := range chunks {
			if c.Since < 200 {
				e.Errorf("a chunk of minute %d of session %s is still there", c.Since, c.Session)
			}
		}
	}}),
	needs(lease.KeepHistory, testCase{"history needs no session, and says nothing about leases", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		before := e.view()
		e.put("a", 100, "x")
		e.put("never-there", 100, "y")
		v := e.since(before.Revision)
		equal(e, "workers", len(v.Workers), 1)
		e.held(e.beat("a"), k("1"))
		e.leave("a")
		e.chunks(0, "a 100 x", "never-there 100 y")
	}}),
	needs(lease.KeepHistory, testCase{"an invalid chunk is refused", func(e *env) {
		h := e.historian()
		for name, c := range map[string]lease.HistoryChunk{
			"without data":          {Session: "a", Since: 1},
			"of too much data":      {Session: "a", Since: 1, Data: make([]byte, lease.MaxHistoryBytes+1)},
			"of a minute below 0":   {Session: "a", Since: -1, Data: []byte{1}},
			"of a minute far off":   {Session: "a", Since: 1e12, Data: []byte{1}},
			"of a session that odd": {Session: "a/b", Since: 1, Data: []byte{1}},
		} {
			if err := h.PutHistory(e.ctx, e.app, c); err == nil {
				e.Errorf("a chunk %s is put", name)
			}
		}
		if err := h.PutHistory(e.ctx, "", lease.HistoryChunk{Session: "a", Since: 1, Data: []byte{1}}); err == nil {
			e.Error("a chunk of no application is put")
		}
		if _, err := h.History(e.ctx, "a\x00", 0); err == nil {
			e.Error("the history of an application without a name is read")
		}
		e.chunks(0)
	}}),
	needs(lease.KeepHistory, testCase{"the largest chunk is kept whole", func(e *env) {
		data := bytes.Repeat([]byte{0xfe}, lease.MaxHistoryBytes)
		h := e.historian()
		for range 2 {
			if err := h.PutHistory(e.ctx, e.app, lease.HistoryChunk{Session: "a", Since: 9_999_999_999, Data: data}); err != nil {
				e.Fatal(err)
			}
		}
		chunks, err := h.History(e.ctx, e.app, 0)
		if err != nil || len(chunks) != 1 || !bytes.Equal(chunks[0].Data, data) {
			e.Errorf("%d chunks, %v", len(chunks), err)
		}
	}}),
	needs(lease.KeepHistory, testCase{"a removed application has no history", func(e *env) {
		other := e.in(e.app + "-other")
		other.put("a", 100, "x")
		e.start("a")
		e.put("a", 100, "x")
		e.removed()
		e.chunks(0)
		other.chunks(0, "a 100 x")
	}}),
	needs(lease.KeepHistory, testCase{"history alone is not an application", func(e *env) {
		e.put("a", 100, "x")
		equal(e, "listed", e.listed(), false)
		e.start("a")
		equal(e, "listed with a session", e.listed(), true)
	}}),
	needs(lease.KeepHistory, testCase{"several put chunks at once", func(e *env) {
		e.historian()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				w := e
				if i%2 == 1 {
					w = e.through(e.other)
				}
				for m := range int64(5) {
					w.put(fmt.Sprint("w", i), 100+m*kept/2, "x")
				}
			})
		}
		all.Wait()
		last := 100 + 4*(kept/2)
		var want []string
		for i := range 8 {
			want = append(want, fmt.Sprint("w", i, " ", last, " x"))
		}
		e.chunks(last, want...)
	}}),
}

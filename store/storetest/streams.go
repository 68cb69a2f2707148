package storetest

import (
	"strings"

	"github.com/weir-go/weir/lease"
)

// streamCases test the streams that workers read.
var streamCases = []testCase{
	needs(lease.NoteStreams, testCase{"each heartbeat sets the streams of its session", func(e *env) {
		for _, said := range []lease.Streams{
			lease.StreamsOf([]string{"orders", "logs"}, nil), lease.StreamsOf(nil, nil),
			lease.StreamsOf([]string{"orders"}, func(string) bool { return true }), "", "2:abcdef +ghijkl",
			lease.Streams("1:" + strings.Repeat("x", lease.MaxStreamsBytes-2)),
		} {
			e.report(lease.Report{Session: "a", First: true, Streams: said})
			e.streams("a", said)
			e.report(lease.Report{Session: "a", Streams: said + " more"})
			if len(said) < lease.MaxStreamsBytes-10 {
				e.streams("a", said+" more")
			}
			e.report(lease.Report{Session: "a", Streams: said})
			e.streams("a", said)
			e.must(drain("a", true), drain("a", false))
			e.streams("a", said)
		}
		e.beat("a")
		e.streams("a", "")
		e.report(lease.Report{Session: "a", Streams: "1:orders"})
		e.end("a")
		e.streams("a", "1:orders")
	}}),
	needs(lease.NoteStreams, testCase{"streams that no store keeps are left out", func(e *env) {
		for _, odd := range []lease.Streams{"1:a\nb", "1:\x00", "1:ü", lease.Streams("1:" + strings.Repeat("x", lease.MaxStreamsBytes))} {
			e.report(lease.Report{Session: "a", First: true, Streams: odd})
			e.streams("a", "")
		}
	}}),
	needs(lease.NoteStreams|lease.WatchHeartbeats, testCase{"a heartbeat that asks for others is answered with the streams of the leader", func(e *env) {
		asks := func(session string, own, want lease.Streams) {
			e.Helper()
			for range 2 {
				o := e.report(lease.Report{Session: session, Streams: own, Others: true})
				equal(e, "the leader's streams for "+session, o.Leader.Streams, want)
			}
		}
		e.report(lease.Report{Session: "a", First: true, Streams: "1:orders"})
		o := e.report(lease.Report{Session: "b", First: true, Streams: "1:logs", Others: true})
		equal(e, "without a leader", o.Leader.Streams, "")
		e.lead("a", 0)
		asks("b", "1:logs", "1:orders")
		asks("a", "1:orders", "1:orders")
		asks("a", "1:orders +more", "1:orders +more")
		asks("b", "1:logs", "1:orders +more")
		e.must(create("1"), assign("1", 1, "b"), create("2"), assign("2", 1, "b"))
		asks("b", "1:logs", "1:orders +more")
		e.beat("a")
		asks("b", "1:logs", "")
		e.lead("b", 1)
		asks("a", "1:orders", "1:logs")
		if o := e.beat("a"); o.Leader.Streams != "" {
			e.Errorf("a heartbeat that does not ask has the leader's streams %q", o.Leader.Streams)
		}
		e.end("b")
		asks("a", "1:orders", "")
	}}),
}

// streams checks that a view contains a session with these streams.
func (e *env) streams(session string, want lease.Streams) {
	e.Helper()
	w, _ := e.worker(session)
	if w.Streams != want {
		e.Errorf("the streams of %s are %.80q, want %.80q", session, w.Streams, want)
	}
}

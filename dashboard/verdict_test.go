package dashboard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

func TestWorkersAreSilentOnlyAfterLooksThatSawIt(t *testing.T) {
	t.Parallel()
	look := func(b beat, count uint64, second int) beat {
		return b.see(lease.Worker{Heartbeats: count}, noon.Add(time.Duration(second)*time.Second))
	}
	var never beat
	for _, c := range []struct {
		name string
		seen beat
		want life
	}{
		{"one look", look(never, 7, 0), lifeUnknown},
		{"two looks at a worker that sends heartbeats", look(look(never, 7, 0), 9, 2), lifeBeats},
		{"no heartbeat for a while", look(look(look(never, 7, 0), 9, 2), 9, 6), lifeBeats},
		{"no heartbeat for the failover time", look(look(look(never, 7, 0), 9, 2), 9, 7), lifeSilent},
		{"and again", look(look(look(never, 7, 0), 7, 9), 8, 10), lifeBeats},
		{"looks an hour apart say little", look(look(never, 7, 0), 9, 3600), lifeUnknown},
	} {
		if got := lifeOf(lease.Worker{}, c.seen); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := lifeOf(lease.Worker{Ended: true}, never); got != lifeEnded {
		t.Errorf("an ended session: %s", got)
	}
}

func TestTheStateSaysWhyIfItMisleads(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]standing{
		"idle (paused)": {State: health.Idle, Cause: health.Paused},
		"near the end of retention (records expired)": {State: health.RetentionNear, Cause: health.RecordsExpired},
		"near the end of retention":                   {State: health.RetentionNear, Cause: health.RecordsExpire},
		"stalled":                                     {State: health.Stalled, Cause: health.InHandler},
		"finished":                                    {State: health.Idle, Cause: health.Paused, Done: true},
	} {
		if got := of.Word(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The newest events say since when a state lasts, as the sentence does, and leave out errors.
func TestTheNewestEventsAgreeWithTheSentence(t *testing.T) {
	t.Parallel()
	at := noon.Add(2 * time.Minute)
	rows := lately("billing", eventLog{events: []event{
		{at: at, after: at, since: noon, kind: stallEvent, text: "stalled: in the handler" + lastError + "no room", shards: []lease.Key{keyOf(1)}},
		{at: at, after: at, since: noon, kind: troubleEvent, text: "falling behind: its lag grew by 2 min in 2 min", shards: []lease.Key{keyOf(2)}},
	}}, at.Add(time.Minute))
	var got []string
	for _, r := range rows {
		got = append(got, r.Summary+", "+r.When)
	}
	want := []string{"shard 1: stalled: in the handler, since " + when(noon, at), "shard 2: falling behind: its lag grew by 2 min in 2 min, at " + when(at, at)}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A service that answers with errors is not called silent.
func TestAnErrorOfKinesisIsAnAnswer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Kinesis GetShardIterator: ResourceNotFoundException: Stream orders not found":                                     "Kinesis has answered with an error since 12:00:00 UTC; Kinesis answers with an error",
		"2 shards: there is no such stream or shard (Shard a does not exist): check --stream, the region and the endpoint": "Kinesis has answered with an error since 12:00:00 UTC; Kinesis answers with an error",
		"dial tcp: connection refused": "Kinesis has not answered since 12:00:00 UTC; Kinesis does not answer",
	} {
		var h pageHead
		h.age(sighting{at: noon, blind: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), lagErr: errors.New(text)})
		if got := h.Down.Lasts() + "; " + h.Down.Says(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

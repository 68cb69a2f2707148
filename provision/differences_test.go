package provision

import (
	"slices"
	"testing"
	"time"
)

func TestWhatANewStreamNeedsNext(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		want Stream
		has  state
		do   step
	}{
		"nothing beyond the defaults":               {Stream{Retention: day}, state{retention: day}, nothing},
		"encryption before retention":               {Stream{Retention: 2 * day, KMSKey: "k"}, state{retention: day}, encrypt},
		"retention after encryption":                {Stream{Retention: 2 * day, KMSKey: "k"}, state{retention: day, encrypted: true}, retain},
		"all done":                                  {Stream{Retention: 2 * day, KMSKey: "k"}, state{retention: 2 * day, encrypted: true}, nothing},
		"a longer retention is not cut":             {Stream{Retention: day}, state{retention: 2 * day}, nothing},
		"another key is not exchanged":              {Stream{Retention: day, KMSKey: "a"}, state{retention: day, encrypted: true, key: "b"}, nothing},
		"encryption that was not requested is kept": {Stream{Retention: day}, state{retention: day, encrypted: true}, nothing},
		"a change from on-demand is not a step":     {Stream{Retention: day, Shards: 4}, state{retention: day, onDemand: true}, nothing},
	} {
		if got := next(c.want, c.has); got != c.do {
			t.Errorf("%s: %v, want %v", name, got, c.do)
		}
	}
}

func TestDifferencesNameWhatIsNotAsWanted(t *testing.T) {
	const day = 24 * time.Hour
	plain := state{onDemand: true, shards: 4, retention: day, record: 1 << 20}
	want := func(change func(*Stream)) Stream {
		s := Stream{Retention: day, MaxRecordSize: 1 << 20}
		if change != nil {
			change(&s)
		}
		return s
	}
	has := func(change func(*state)) state {
		s := plain
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		want Stream
		has  state
		tags map[string]string
		told []string
	}{
		"none": {want: want(nil), has: plain},
		"mode": {want: want(func(s *Stream) { s.Shards = 2 }), has: plain,
			told: []string{"it is in on-demand mode, not in provisioned mode with 2 shards"}},
		"mode, the other way": {want: want(nil), has: has(func(s *state) { s.onDemand = false }),
			told: []string{"it is in provisioned mode with 4 shards, not in on-demand mode"}},
		"shards": {want: want(func(s *Stream) { s.Shards = 2 }), has: has(func(s *state) { s.onDemand = false }),
			told: []string{"it has 4 open shards, not 2"}},
		"no encryption": {want: want(func(s *Stream) { s.KMSKey = "alias/orders" }), has: plain,
			told: []string{"it is not encrypted, with alias/orders or another key"}},
		"settings that were not requested": {want: Stream{}, has: has(func(s *state) {
			s.encrypted, s.key, s.retention, s.record = true, "alias/aws/kinesis", 9*day, 2<<20
		})},
		"another key": {want: want(func(s *Stream) { s.KMSKey = "1234" }), has: has(func(s *state) { s.encrypted, s.key = true, "arn:aws:kms:eu-west-1:123456789012:key/5678" }),
			told: []string{"it is encrypted with the key arn:aws:kms:eu-west-1:123456789012:key/5678, not with 1234"}},
		"the same key": {want: want(func(s *Stream) { s.KMSKey = "1234" }), has: has(func(s *state) { s.encrypted, s.key = true, "arn:aws:kms:eu-west-1:123456789012:key/1234" })},
		"an alias may be any key": {want: want(func(s *Stream) { s.KMSKey = "alias/orders" }),
			has: has(func(s *state) { s.encrypted, s.key = true, "arn:aws:kms:eu-west-1:123456789012:key/1234" })},
		"another alias": {want: want(func(s *Stream) { s.KMSKey = "alias/orders" }), has: has(func(s *state) { s.encrypted, s.key = true, "alias/bills" }),
			told: []string{"it is encrypted with the key alias/bills, not with alias/orders"}},
		"retention and size": {want: want(func(s *Stream) { s.Retention, s.MaxRecordSize = 2*day, 2<<20 }), has: plain,
			told: []string{"it keeps records for 24 h, not for 48 h", "its records may have 1024 KiB, not 2048"}},
		"tags": {want: want(func(s *Stream) { s.Tags = map[string]string{"a": "1", "b": "2", "c": "3"} }), has: plain, tags: map[string]string{"a": "1", "b": "3", "z": "0"},
			told: []string{`its tag "b" is "3", not "2"`, `it has no tag "c"`}},
	} {
		if got := differences(c.want, c.has, c.tags); !slices.Equal(got, c.told) {
			t.Errorf("%s: %q, want %q", name, got, c.told)
		}
	}
}

package model

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *Service) ask(t *testing.T, op, in string, now time.Time) (out map[string]any, status int) {
	t.Helper()
	c, err := Read("Kinesis_20131202."+op, "application/x-amz-json-1.1", []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	a := s.Do(c, Whim{}, now)
	if a.CBOR {
		t.Fatalf("%s is answered in CBOR", op)
	}
	if err := json.Unmarshal(a.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out, a.Status
}

func TestHashRangesStayWhole(t *testing.T) {
	s := New()
	st := s.Create("s", 5, start)
	for i := range 60 {
		open := st.Open()
		if i%3 == 0 {
			s.Merge(st, open[i%len(open)], start)
		} else {
			s.Split(st, open[i%len(open)], start)
		}
		var next uint64
		for range st.Open() {
			for _, sh := range st.Open() {
				if sh.Lo == next {
					next = sh.Hi + 1
					break
				}
			}
		}
		if next != 0 { // it is 0 after the last shard
			t.Fatalf("after %d changes the open shards do not cover every hash once", i)
		}
	}
	if st.Shards[0].Lo != 0 || st.Shards[4].Hi != math.MaxUint64 {
		t.Error("the first shards do not cover everything")
	}
}

func TestReadingFollowsPositions(t *testing.T) {
	s := New()
	st := s.Create("s", 1, start)
	var all []Record
	for i := range 4 {
		_, r := s.Put(st, "k", []byte{byte(i)}, nil, start.Add(time.Duration(i)*time.Second))
		all = append(all, r)
	}
	for _, tt := range []struct {
		name, in string
		first    int
	}{
		{"oldest", `"ShardIteratorType":"TRIM_HORIZON"`, 0},
		{"at", `"ShardIteratorType":"AT_SEQUENCE_NUMBER","StartingSequenceNumber":"` + Number(all[2].Seq) + `"`, 2},
		{"after", `"ShardIteratorType":"AFTER_SEQUENCE_NUMBER","StartingSequenceNumber":"` + Number(all[2].Seq) + `"`, 3},
		{"time", `"ShardIteratorType":"AT_TIMESTAMP","Timestamp":1767225601.000`, 1},
		{"latest", `"ShardIteratorType":"LATEST"`, 4},
	} {
		out, status := s.ask(t, "GetShardIterator", `{"StreamName":"s","ShardId":"shardId-000000000000",`+tt.in+`}`, start)
		if status != 200 {
			t.Fatalf("%s: %v", tt.name, out)
		}
		it, ok := parseIterator(out["ShardIterator"].(string))
		if !ok {
			t.Fatalf("%s: no iterator in %v", tt.name, out)
		}
		got := 0
		for got < len(all) && all[got].Seq <= it.after {
			got++
		}
		if got != tt.first {
			t.Errorf("%s: reading begins at record %d, want %d", tt.name, got, tt.first)
		}
	}
	st.Trim(start.Add(3*time.Second), start.Add(time.Minute), func(*Shard, Record) {})
	if out, status := s.ask(t, "GetShardIterator", `{"StreamName":"s","ShardId":"shardId-000000000000","ShardIteratorType":"AFTER_SEQUENCE_NUMBER","StartingSequenceNumber":"`+
		Number(all[1].Seq)+`"}`, start); status != 400 || out["__type"] != "InvalidArgumentException" {
		t.Errorf("a position that has expired: %d %v", status, out)
	}
}

func TestIteratorsEnd(t *testing.T) {
	s := New()
	st := s.Create("s", 1, start)
	it := iterator{stream: "s", shard: st.Shards[0].ID, life: st.Life, issued: start.UnixMilli()}
	read := func(token string, now time.Time) Answer {
		it, known := parseIterator(token)
		return s.Do(Call{Op: "GetRecords", Stream: "s", Shard: st.Shards[0].ID, it: it, known: known, limit: 10}, Whim{}, now)
	}
	if a := read(it.String(), start.Add(4*time.Minute)); a.Status != 200 {
		t.Errorf("after four minutes: %s", a.Body)
	}
	if a := read(it.String(), start.Add(6*time.Minute)); a.Status != 400 {
		t.Errorf("after six minutes: %s", a.Body)
	}
	s.Delete("s")
	if a := read(it.String(), start); a.Status != 400 {
		t.Errorf("of a stream that is gone: %s", a.Body)
	}
	s.Create("s", 1, start)
	if a := read(it.String(), start); a.Status != 400 {
		t.Errorf("of a stream that was made anew: %s", a.Body)
	}
	if _, ok := parseIterator("s|x|y|1|1"); ok {
		t.Error("nonsense is an iterator")
	}
}

func TestRequestsInCBOR(t *testing.T) {
	body := append(text(text(head(nil, 5, 2), "ShardIterator"), "s|shard|1|2|3"), text(nil, "Limit")...)
	body = head(body, 0, 500)
	c, err := Read("Kinesis_20131202.GetRecords", "application/x-amz-cbor-1.1", body)
	if err != nil || c.Shard != "shard" || c.limit != 500 {
		t.Errorf("%+v, %v", c, err)
	}
	for n := range body {
		if _, err := Read("Kinesis_20131202.GetRecords", "application/x-amz-cbor-1.1", body[:n]); err == nil {
			t.Errorf("the first %d bytes are a request", n)
		}
	}
}

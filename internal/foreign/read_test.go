package foreign

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// lines describes a state.
func lines(s State) string {
	var b strings.Builder
	for _, r := range s.Rows {
		b.WriteString(short(r.Shard) + " " + r.At.String() + " " + r.Raw + "\n")
	}
	for _, n := range s.Signs {
		b.WriteString(n.Key + " of " + n.Worker + " " + n.Value + "\n")
	}
	for _, n := range s.Notes {
		b.WriteString(n + "\n")
	}
	return b.String()
}

func TestRead(t *testing.T) {
	const beat = "2026-01-31T11:59:50.5Z"
	lifion := func(born string, shards map[string]any) func() (State, error) {
		return func() (State, error) {
			return ReadLifion(Item{
				"streamCreatedOn": born, "shards": shards,
				"consumers": map[string]any{"c1": map[string]any{"heartbeat": beat, "host": "h1", "isStandalone": true}},
			}, family(), map[string]string{id(2): seqA}, LifionHeartbeat)
		}
	}
	for name, c := range map[string]struct {
		read  func() (State, error)
		want  string // or a part of the error
		fails bool
	}{
		"vmware": {read: func() (State, error) {
			return ReadVMware([]Item{
				{"ShardID": id(2), "Checkpoint": seqA, "AssignedTo": "w1", "LeaseTimeout": "2024-03-04T10:00:10.123456789Z"},
				{"ShardID": id(1), "Checkpoint": "SHARD_END", "LeaseTimeout": "2023-03-28T10:00:10Z"},
				{"ShardID": id(3), "Checkpoint": "", "AssignedTo": "", "LeaseTimeout": "0001-01-01T00:00:00Z"},
			}, VMwareFailover)
		}, want: "1 end SHARD_END\n2 " + seqA + " " + seqA + "\n3  \n" + id(2) + " of w1 " + seqA + " 2024-03-04T10:00:10.123456789Z\n"},
		"vmware, a damaged number": {read: func() (State, error) {
			return ReadVMware([]Item{{"ShardID": id(1), "Checkpoint": "1e9"}}, 0)
		}, fails: true, want: `"1e9" is not a sequence number`},
		"vmware, another table": {read: func() (State, error) { return ReadVMware([]Item{{"leaseKey": "x"}}, 0) }, fails: true, want: "not the ID of a shard"},
		"vmware, a damaged time": {read: func() (State, error) {
			return ReadVMware([]Item{{"ShardID": id(1), "LeaseTimeout": "tomorrow"}}, 0)
		}, fails: true, want: "want a time in RFC 3339"},
		"kinsumer": {read: func() (State, error) {
			return ReadKinsumer([]Item{
				{"Shard": id(1), "SequenceNumber": seqA, "LastUpdate": Number("17"), "Finished": Number("18"), "OwnerID": nil},
				{"Shard": id(2), "SequenceNumber": "LATEST", "LastUpdate": Number("17"), "Finished": nil, "OwnerID": "u1", "OwnerName": "host-7"},
				{"Shard": id(3), "SequenceNumber": nil, "LastUpdate": Number("19"), "Finished": nil},
			}, []Item{{"ID": "u1", "Name": "host-7", "LastUpdate": Number("23")}}, time.Minute)
		}, want: "1 end Finished\n2 latest LATEST\n3  \nclient u1 of host-7 23\nshard " + id(2) + " of host-7 17 LATEST\n"},
		"kinsumer, a damaged time": {read: func() (State, error) {
			return ReadKinsumer([]Item{{"Shard": id(1), "LastUpdate": "17"}}, nil, 0)
		}, fails: true, want: "LastUpdate is not a number"},
		"lifion": {read: lifion("1970-01-01T00:00:07.000Z", map[string]any{
			id(1): map[string]any{"checkpoint": seqB, "depleted": true, "version": "a"},
			id(2): map[string]any{"checkpoint": seqA, "depleted": false, "version": "b"},
			id(4): map[string]any{"checkpoint": nil, "version": "c"},
		}), want: "1 end depleted\n2 oldest " + seqA + "\n4  \nconsumer c1 of h1 " + beat + "\nconsumer c1 reads all shards by itself (useAutoShardAssignment is off): its own positions are not moved\n"},
		"lifion, a recreated stream": {read: lifion("2021-03-01T08:00:00.000Z", nil), fails: true, want: "its numbers are not valid any more"},
		"lifion, a damaged shard":    {read: lifion("", map[string]any{id(1): "x"}), fails: true, want: "is not a map"},
		"no item of lifion":          {read: func() (State, error) { return ReadLifion(nil, family(), nil, 0) }},
		"harlow": {read: func() (State, error) {
			return ReadHarlow(map[string]string{id(1): seqA, id(2): seqB + ".000"}, nil, time.Minute)
		}, want: "1 " + seqA + " " + seqA + "\n2 " + seqB + " " + seqB + ".000\n" + id(1) + " of a worker without a group " + seqA + "\n" + id(2) + " of a worker without a group " + seqB + ".000\n"},
		"harlow, an exponent": {read: func() (State, error) { return ReadHarlow(map[string]string{id(1): "4.9e55"}, nil, 0) }, fails: true, want: "not a sequence number"},
		"harlow with a group": {read: func() (State, error) {
			return ReadHarlow(map[string]string{id(1): seqA}, []Item{
				{"shard_id": "LEASE#" + id(1), "lease_owner": "", "lease_expires_at": Number("0"), "completed": true},
				{"shard_id": "LEASE#" + id(2), "lease_owner": "h7", "lease_expires_at": Number("9"), "completed": false},
				{"shard_id": "WORKER#h7", "worker_expires_at": Number("11")},
			}, HarlowLease)
		}, want: "1 end completed\n2  \nLEASE#" + id(2) + " of h7 9\nWORKER#h7 of h7 11\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := c.read()
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			if got := lines(s); err != nil || got != c.want {
				t.Errorf("%v, got\n%swant\n%s", err, got, c.want)
			}
		})
	}
	numbers, err := HarlowPositions([]Item{
		{"namespace": "a-b", "shard_id": id(1), "sequence_number": seqA}, {"namespace": "a-b-c", "shard_id": id(2), "sequence_number": seqA},
	}, HarlowSpace("a", "b"))
	if err != nil || len(numbers) != 1 || numbers[id(1)] != seqA {
		t.Errorf("%v, %v", numbers, err)
	}
}

func TestWatch(t *testing.T) {
	state := func(value string, updated time.Time) State {
		return State{Signs: []Sign{{Key: "a", Worker: "w1", Value: value, Updated: updated, Every: 10 * time.Second}}}
	}
	old := now.Add(-time.Hour)
	w := NewWatch()
	w.See(now, state("1", old))
	if w.Left() != 0 || len(w.Running()) > 0 {
		t.Errorf("an old sign: %v, %v", w.Left(), w.Running())
	}
	if w.Changed(state("1", old)) || !w.Changed(state("2", old)) {
		t.Error("a change is not noticed")
	}
	w.See(now.Add(time.Second), state("2", old))
	if w.Left() != 12*time.Second || strings.Join(w.Running(), ",") != "w1" {
		t.Errorf("an old sign that moves: %v, %v", w.Left(), w.Running())
	}
	w.See(now.Add(14*time.Second), state("2", old))
	if w.Left() > 0 || len(w.Running()) > 0 {
		t.Errorf("a sign that is still again: %v, %v", w.Left(), w.Running())
	}
	for name, updated := range map[string]time.Time{"recent": now, "in the future": now.Add(time.Hour), "without a time": {}} {
		w := NewWatch()
		w.See(now, state("1", updated))
		if w.Left() != 12*time.Second || len(w.Running()) > 0 {
			t.Errorf("a sign %s: %v, %v", name, w.Left(), w.Running())
		}
		w.See(now.Add(time.Second), State{})
		if w.Left() > 0 {
			t.Errorf("a sign %s that is gone: %v", name, w.Left())
		}
	}
}

// Items come from a table that anybody may have written.
func FuzzRead(f *testing.F) {
	f.Add(id(1), seqA, "w1", "2024-03-04T10:00:10Z", "17")
	f.Add("", "LATEST", "\x00", "tomorrow", "-1")
	f.Fuzz(func(t *testing.T, key, number, owner, at, n string) {
		for _, read := range []func() (State, error){
			func() (State, error) {
				return ReadVMware([]Item{{"ShardID": key, "Checkpoint": number, "AssignedTo": owner, "LeaseTimeout": at}}, 1)
			},
			func() (State, error) {
				return ReadKinsumer([]Item{{"Shard": key, "SequenceNumber": number, "OwnerID": owner, "LastUpdate": Number(n)}}, nil, 1)
			},
			func() (State, error) { return ReadHarlow(map[string]string{key: number}, nil, 1) },
		} {
			s, err := read()
			if err != nil {
				var of *RowError
				if !errors.As(err, &of) {
					t.Errorf("%T: %v", err, err)
				}
				continue
			}
			if _, err := There(VMware, s, family(), Starts{}); err != nil && !strings.Contains(err.Error(), "has none of the") {
				t.Error(err)
			}
		}
	})
}

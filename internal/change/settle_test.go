package change

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

const seqA = "49590338271490256608559692538361571095921575989136588898"

func TestDifferences(t *testing.T) {
	want := func(id string, p shard.Position) Wanted {
		return Wanted{
			Lease: lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Position: p},
		}
	}
	v := lease.View{
		Leases: []lease.Lease{want("0", shard.End).Lease, want("1", shard.Oldest).Lease},
	}
	got := Differences(
		[]Wanted{want("0", shard.Oldest), want("1", shard.End), want("2", shard.End)},
		v,
	)
	if strings.Join(got, "; ") != "s/1 is at oldest, before end; s/2 has no lease" {
		t.Errorf("%q", got)
	}
}

func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		position string
		seen     *Seen
		want     string // the position, a note after a semicolon; or a part of the error
		fails    bool
	}{
		"a plain record":               {position: seqA + "+1", seen: &Seen{Records: 1}, want: seqA},
		"the first of an aggregate":    {position: seqA + "+1", seen: &Seen{Records: 3}, want: seqA + "+1"},
		"the last of an aggregate":     {position: seqA + "+3", seen: &Seen{Records: 3}, want: seqA},
		"more than the aggregate has":  {position: seqA + "+9", seen: &Seen{Records: 3}, want: seqA},
		"the whole record":             {position: seqA, seen: &Seen{Records: 3}, want: seqA},
		"a record that has expired":    {position: seqA + "+1", seen: &Seen{}, want: seqA},
		"records after it expired too": {position: seqA + "+2", seen: &Seen{Expired: true}, want: seqA + "; the checkpoint is older than the oldest record"},
		"a shard that cannot be read":  {position: seqA + "+1", seen: &Seen{Failed: "throttled"}, want: seqA + "+1; could not be read (throttled)"},
		"a shard that was not read":    {position: seqA + "+1", want: seqA + "+1"},
		"another kind of position":     {position: "oldest", seen: &Seen{}, want: "oldest"},
		"a number of another stream":   {position: seqA + "+1", seen: &Seen{Refused: "invalid"}, fails: true, want: "does not know checkpoint " + seqA},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := shard.Parse(c.position)
			if err != nil {
				t.Fatal(err)
			}
			key := lease.Key{Stream: "s", Shard: "0"}
			seen := map[lease.Key]Seen{}
			if c.seen != nil {
				seen[key] = *c.seen
			}
			plan := Plan{Leases: []Wanted{{Lease: lease.Lease{Key: key, Position: p}}}}
			got, err := Settle(plan, seen)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			if err != nil || plan.Leases[0].Lease.Position != p {
				t.Fatalf("%v; the plan that came in is at %s", err, plan.Leases[0].Lease.Position)
			}
			position, note, noted := strings.Cut(c.want, "; ")
			if at := got.Leases[0].Lease.Position.String(); at != position ||
				noted != (len(got.Notes) == 1) ||
				noted && !strings.Contains(got.Notes[0], note) {
				t.Errorf("at %s, notes %q, want %s", at, got.Notes, c.want)
			}
		})
	}
}

package foreign

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// ours returns leases of weir in the form of a shard's number and a position.
func ours(t *testing.T, text ...string) (all []lease.Lease) {
	t.Helper()
	for _, r := range rows(t, text...).Rows {
		all = append(all, lease.Lease{Key: lease.Key{Stream: "orders", Shard: r.Shard}, Position: r.At})
	}
	return all
}

func TestBack(t *testing.T) {
	done := []string{"0 end", "1 end", "2 " + seqA, "3 end", "4 " + seqB, "5 " + seqA, "6 end"}
	with := func(more ...string) []string { return append(append([]string(nil), done[:4]...), more...) }
	for name, c := range map[string]struct {
		client  Client
		leases  []string
		there   []string
		options BackOptions
		want    string // the writes and notes, or a part of the error
		fails   bool
	}{
		"vmware": {client: VMware, leases: done, there: []string{"2 " + seqA, "5 none"}, want: `
0 SHARD_END new
3 SHARD_END new
5 ` + seqA + `
6 SHARD_END new
1 SHARD_END new
2 ` + seqA + ` stays
4 ` + seqB + ` new
`},
		"harlow without a group has no mark for an end": {client: Harlow, leases: done, there: []string{"0 " + seqA, "2 " + seqA}, want: `
0 - stays
3 - new stays
5 ` + seqA + ` new
6 - new stays
1 - new stays
2 ` + seqA + ` stays
4 ` + seqB + ` new
` + id(6) + `: harlow/kinesis-consumer has no mark for the end of a shard, and reads this shard again if its initial position is TRIM_HORIZON
1 shard is finished, and the rows stay as they are: versions up to 0.5.0 read the records after these rows again (` + id(0) + `)
`},
		"harlow with a group": {client: Harlow, leases: []string{"0 end", "2 " + seqA}, options: BackOptions{Group: true}, want: `
0 completed new
3 - new stays
5 - new stays
6 - new stays
1 - new stays
2 ` + seqA + ` new
4 - new stays
start harlow/kinesis-consumer with WithShardIteratorType(TRIM_HORIZON): shards without a position begin there
`},
		"positions that are times": {client: VMware, leases: with("4 end", "5 2026-01-31T11:00:00Z", "6 2026-01-31T10:00:00Z"), want: `
0 SHARD_END new
3 SHARD_END new
5 - new stays
6 - new stays
1 SHARD_END new
2 ` + seqA + ` new
4 SHARD_END new
start vmware-go-kcl with InitialPositionInStreamExtended AT_TIMESTAMP at 2026-01-31T10:00:00.000Z: shards without a position begin there
`},
		"kinsumer begins without a position at the oldest record": {client: Kinsumer, leases: with("4 oldest", "5 2026-01-31T11:00:00Z", "6 end"), there: []string{"4 none"}, want: `
0 Finished new
3 Finished new
5 - new stays
6 Finished new
1 Finished new
2 ` + seqA + ` new
4 - stays
`},
		"lifion gets the first number of a child": {client: Lifion, leases: with("4 oldest", "5 "+seqA, "6 end"), options: BackOptions{First: map[string]string{id(4): seqB}}, want: `
0 depleted new
3 depleted new
5 ` + seqA + ` new
6 depleted new
1 depleted new
2 ` + seqA + ` new
4 ` + seqB + ` new
`},
		"lifion would skip the records of a root": {client: Lifion, leases: with("4 end", "5 oldest", "6 end"), fails: true, want: "begins such a shard at the tip"},
		"a position inside a record":              {client: Kinsumer, leases: with("4 " + seqB + "+3"), fails: true, want: "inside or before a record, which kinsumer cannot store"},
		"the client is ahead":                     {client: VMware, leases: done, there: []string{"2 " + seqB, "4 end"}, fails: true, want: "is ahead in 2 of these shards already, at " + seqB},
		"the client is ahead, on request": {client: VMware, leases: done, there: []string{"2 " + seqB}, options: BackOptions{Replace: true}, want: `
0 SHARD_END new
3 SHARD_END new
5 ` + seqA + ` new
6 SHARD_END new
1 SHARD_END new
2 ` + seqA + `
4 ` + seqB + ` new
`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Back(c.client, ours(t, c.leases...), family(), rows(t, c.there...), c.options)
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			var b strings.Builder
			for _, w := range r.Writes {
				raw := w.Raw
				if w.To.IsZero() {
					raw = "-"
				}
				fmt.Fprintf(&b, "%d %s", number(w.Row.Shard), raw)
				if w.New {
					b.WriteString(" new")
				}
				if w.Stays {
					b.WriteString(" stays")
				}
				b.WriteString("\n")
			}
			for _, n := range r.Notes {
				b.WriteString(n + "\n")
			}
			if got := b.String(); err != nil || got != c.want[1:] {
				t.Errorf("%v, got\n%swant%s", err, got, c.want)
			}
		})
	}
}

func number(shardID string) (n int) {
	_, _ = fmt.Sscanf(shardID, "shardId-%d", &n)
	return n
}

func TestUnwritten(t *testing.T) {
	writes := []Write{
		{Row: Row{Shard: "1"}, To: shard.End}, {Row: Row{Shard: "2"}, To: shard.End},
		{Row: Row{Shard: "3"}}, {Row: Row{Shard: "4"}, To: shard.End, Stays: true},
	}
	got := Unwritten(writes, State{Rows: []Row{{Shard: "1", At: shard.Oldest}}})
	if strings.Join(got, "; ") != "1 is at oldest, before end; 2 has no row" {
		t.Errorf("%q", got)
	}
}

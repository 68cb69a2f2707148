package dashboard

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

func TestShardsOfAKindShareARow(t *testing.T) {
	t.Parallel()
	var shards []shardInfo
	add := func(n int, s health.State, r health.Reason, lag time.Duration) {
		for i := range n {
			id := fmt.Sprintf("shardId-%012d", len(shards))
			shards = append(shards, shardInfo{
				Lease:    lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Load: lease.LoadOf(1024)},
				standing: standing{State: s}, Reason: r, Worker: fmt.Sprint("w", i%3), Held: true,
				Lag: lag + time.Duration(i)*time.Minute/4, LagKnown: true, Sentence: "sentence " + id, Rate: "~1.0 KiB/s",
			})
		}
	}
	add(1, health.Stalled, health.NoProgress, time.Hour)
	add(31, health.FallingBehind, health.LagGrows, 8*time.Minute)
	add(4, health.Behind, health.LagSteady, time.Minute)
	add(40, health.OK, health.NoReason, 0)
	rows := func(query string) (string, appPage) {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		p := appPage{Picture: &drawing{}}
		p.list(view{app: "a", stream: "s", keys: everything}, shards, pickOf(q), past{})
		var names []string
		for _, r := range p.Rows {
			names = append(names, r.Name+" "+r.Word())
		}
		return strings.Join(names, "|"), p
	}
	got, p := rows("")
	if want := "0 stalled|31 shards falling behind|32 behind|33 behind|34 behind|35 behind|40 shards ok"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	row := p.Rows[1]
	if row.Lag != "8 min to 15 min" || row.Worker != "3 workers" || !strings.HasPrefix(row.Rate, "~3") || row.Sentence != "8 min to 15 min behind, "+health.LagGrows.String() {
		t.Errorf("%+v", row)
	}
	if p.AllRows == "" || !strings.Contains(p.Count, "76 shards") || !strings.Contains(p.Count, "share a row") {
		t.Errorf("%q, %q", p.Count, p.AllRows)
	}
	for query, want := range map[string]string{
		"find=stalled":                            "0 stalled",
		"find=shardId-000000000033":               "33 behind",
		"find=nothing":                            "",
		"only=behind." + health.LagSteady.Label(): "32 behind|33 behind|34 behind|35 behind",
	} {
		if got, p := rows(query); got != want || !strings.Contains(p.Count, "of 76 shards") {
			t.Errorf("%s: %s, want %s; %s", query, got, want, p.Count)
		}
	}
	if got, p := rows("rows=all"); strings.Count(got, "|") != pageRows-1 || !strings.Contains(p.Pages[0].Link, "rows=all") {
		t.Errorf("%s, %v", got, p.Pages)
	}
	if link, err := url.Parse(row.Link); err != nil || link.Query().Get("only") != "falling_behind."+health.LagGrows.Label() {
		t.Errorf("%s, %v", row.Link, err)
	}
}

package dashboard

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// Limits of the folding of rows.
const (
	foldFrom  = 20 // with up to so many shards, each shard has a row
	foldLeast = 5  // the least number of shards that share a row
)

// rowPick selects the rows of the table of shards.
type rowPick struct {
	Find string // text that a row contains; "" for all rows
	Only string // the kind of the rows, as kindOfRow returns it; "" for all kinds
	page string
	all  bool // one row for each shard
}

func pickOf(q url.Values) rowPick {
	return rowPick{Find: strings.TrimSpace(q.Get("find")), Only: q.Get("only"), page: q.Get("page"), all: q.Get("rows") == "all"}
}

// folds reports whether shards in the same state share a row.
func (p rowPick) folds(shards int) bool {
	return shards > foldFrom && p == rowPick{}
}

// wants reports whether the table shows a shard.
func (p rowPick) wants(of *shardInfo) bool {
	if p.Only != "" && kindOfRow(of) != p.Only {
		return false
	}
	if p.Find == "" {
		return true
	}
	text := strings.Join([]string{of.Shard, shortID(of.Shard), of.Worker, of.Word(), of.Sentence}, "\n")
	return strings.Contains(strings.ToLower(text), strings.ToLower(p.Find))
}

// kindOfRow returns the state and the reason of a shard. Shards of the same kind can share a row.
func kindOfRow(of *shardInfo) string { return of.Class() + "." + of.Reason.Label() }

// shardRow is a row of the table of shards. It describes one shard, or several of the same kind.
type shardRow struct {
	standing
	Link, Name, Sentence, Lag, Worker, Rate, Most string
}

// list fills in one page of the table of shards. The shards with the worst state come first.
func (p *appPage) list(v view, shards []shardInfo, pick rowPick, known past) {
	p.Pick, p.View = pick, v
	total := len(shards)
	if pick.Find != "" || pick.Only != "" {
		shards = slices.DeleteFunc(slices.Clone(shards), func(of shardInfo) bool { return !pick.wants(&of) })
	}
	by := metricOf(v.by)
	told := by != nil && by.reported != nil && len(known.shards) > 0
	if told {
		p.Most = strings.ToUpper(by.told[:1]) + by.told[1:]
	}
	groups := groupRows(shards, pick.folds(total))
	p.Count = fmt.Sprintf("%d %s, the worst first", len(shards), plural(len(shards), "shard", "shards"))
	if len(shards) < total {
		p.Count = fmt.Sprintf("%d of %d shards, the worst first", len(shards), total)
	}
	if len(groups) < len(shards) {
		p.Count += "; shards with the same state and reason share a row"
	}
	if len(groups) < len(shards) || len(shards) < total {
		p.AllRows = v.link("rows", "all")
	}
	page, last := pageOf(pick.page, len(groups), pageRows)
	if last > 1 {
		p.Count += fmt.Sprintf("; page %d of %d", page, last)
		to := func(n int) string {
			rows := ""
			if pick.all {
				rows = "all"
			}
			return v.link("page", strconv.Itoa(n), "find", pick.Find, "only", pick.Only, "rows", rows)
		}
		if page > 1 {
			p.Pages = append(p.Pages, choice{"before", to(page - 1), false})
		}
		if page < last {
			p.Pages = append(p.Pages, choice{"next", to(page + 1), false})
		}
	}
	for _, of := range groups[(page-1)*pageRows : min(page*pageRows, len(groups))] {
		row := rowOfShards(v, of)
		if told {
			var keys []lease.Key
			for _, one := range of {
				keys = append(keys, one.Key)
			}
			row.Most = by.most(known, keys, p.Picture.from, p.Picture.to)
		}
		p.Rows = append(p.Rows, row)
	}
}

// groupRows returns the shards of each row. If folds is true, shards of the same kind share a row
// if there are at least foldLeast of them. Such a row has the place of the first of its shards.
func groupRows(shards []shardInfo, folds bool) (groups [][]*shardInfo) {
	count := map[string]int{}
	for i := range shards {
		count[kindOfRow(&shards[i])]++
	}
	at := map[string]int{}
	for i := range shards {
		of := &shards[i]
		kind := kindOfRow(of)
		if j, some := at[kind]; some {
			groups[j] = append(groups[j], of)
			continue
		}
		if folds && count[kind] >= foldLeast {
			at[kind] = len(groups)
		}
		groups = append(groups, []*shardInfo{of})
	}
	return groups
}

// rowOfShards returns the row of shards of the same kind.
func rowOfShards(v view, of []*shardInfo) shardRow {
	first := of[0]
	if len(of) == 1 {
		row := shardRow{
			standing: first.standing, Link: link("shard", "app", v.app, "stream", first.Stream, "shard", first.Shard),
			Name: shortID(first.Shard), Sentence: first.Sentence, Worker: first.Worker, Rate: first.Rate,
		}
		if !first.Done {
			row.Lag = lagOf(first.LagKnown, first.Lag)
		}
		return row
	}
	row := shardRow{
		standing: first.standing, Link: v.link("only", kindOfRow(first)), Name: fmt.Sprintf("%d shards", len(of)),
		Rate: observe.NoRate,
	}
	sentences, workers := map[string]bool{}, map[string]bool{}
	least, most, known := time.Duration(-1), time.Duration(-1), 0
	var rate observe.Throughput
	held := false
	for _, one := range of {
		sentences[one.Sentence] = true
		if one.Worker != "" {
			workers[one.Worker] = true
		}
		if one.LagKnown {
			known++
			if least < 0 || one.Lag < least {
				least = one.Lag
			}
			most = max(most, one.Lag)
		}
		if one.Held {
			rate, held = rate.Plus(observe.ThroughputOf(one.Lease)), true
		}
	}
	if held {
		row.Rate = rate.String()
	}
	switch row.Sentence = first.Reason.String(); {
	case len(sentences) == 1:
		row.Sentence = first.Sentence
	case known > 0 && most > enough:
		row.Sentence = strings.TrimSuffix(between(least, most)+" behind, "+row.Sentence, ", ")
	case row.Sentence == "":
		row.Sentence = "up to date"
	}
	if !first.Done {
		row.Lag = "not known"
		if known > 0 {
			row.Lag = between(least, most)
		}
	}
	switch row.Worker = fmt.Sprintf("%d workers", len(workers)); len(workers) {
	case 0:
		row.Worker = ""
	case 1:
		row.Worker = first.Worker
	}
	return row
}

// between formats a range of lags.
func between(least, most time.Duration) string {
	if short(least) == short(most) {
		return short(most)
	}
	return short(least) + " to " + short(most)
}

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-go/weir/lease"
)

// description is what group describe shows.
type description struct {
	App     string       `json:"app"`
	Leader  *leaderInfo  `json:"leader"` // null when nobody leads
	Workers []workerInfo `json:"workers"`
	Leases  []leaseInfo  `json:"leases"`
}

type leaderInfo struct {
	Worker  string `json:"worker"`
	Session string `json:"session"`
	Term    uint64 `json:"term"`
}

type workerInfo struct {
	Worker  string  `json:"worker"`
	Session string  `json:"session"`
	State   string  `json:"state"` // beating, silent, unknown, leaving, ended
	Leader  bool    `json:"leader"`
	Leases  int     `json:"leases"`
	Weight  float64 `json:"weight"`
	Max     int     `json:"max_leases,omitempty"`
}

type leaseInfo struct {
	Stream     string   `json:"stream"`
	Shard      string   `json:"shard"`
	Parents    []string `json:"parents,omitempty"`
	State      string   `json:"state"` // held, moving, free, revoked, waiting, finished
	Worker     string   `json:"worker,omitempty"`
	Session    string   `json:"session,omitempty"`
	Heir       string   `json:"heir,omitempty"`
	Epoch      uint64   `json:"epoch"`
	Checkpoint string   `json:"checkpoint"`
	Lag        *int64   `json:"lag_ms,omitempty"` // not there when it is not known
}

// describe puts together what was seen. beating are the sessions that were seen to beat, nil when nobody looked.
func describe(app, stream string, v lease.View, beating map[string]bool, lags map[lease.Key]lag) description {
	d := description{App: app, Workers: []workerInfo{}, Leases: []leaseInfo{}}
	names := map[string]string{}
	for _, w := range v.Workers {
		names[w.Session] = cmp.Or(w.Name, w.Session)
	}
	nameOf := func(session string) string { return cmp.Or(names[session], session) }
	if s := v.Leader.Session; s != "" {
		d.Leader = &leaderInfo{nameOf(s), s, v.Leader.Term}
	}
	finished, known := map[lease.Key]bool{}, map[lease.Key]bool{}
	for _, l := range v.Leases {
		finished[l.Key], known[l.Key] = l.Finished(), true
	}
	held := map[string]int{}
	for _, l := range v.Leases {
		held[l.Owner]++
		if stream != "" && l.Stream != stream {
			continue
		}
		info := leaseInfo{Stream: l.Stream, Shard: l.Shard, Parents: l.Parents, Session: l.Owner, Epoch: l.Epoch, Checkpoint: l.Position.String()}
		waits := slices.ContainsFunc(l.Parents, func(id string) bool {
			parent := lease.Key{Stream: l.Stream, Shard: id}
			return known[parent] && !finished[parent]
		})
		switch {
		case l.Finished():
			info.State = "finished"
		case l.Heir != "":
			info.State, info.Heir = "moving", nameOf(l.Heir)
		case l.Owner != "":
			info.State = "held"
		case l.Revoked != "":
			info.State = "revoked"
		case waits:
			info.State = "waiting"
		default:
			info.State = "free"
		}
		if l.Owner != "" {
			info.Worker = nameOf(l.Owner)
		}
		if found, asked := lags[l.Key]; asked && found.err == nil {
			ms := found.age.Milliseconds()
			info.Lag = &ms
		}
		d.Leases = append(d.Leases, info)
	}
	for _, w := range v.Workers {
		info := workerInfo{Worker: nameOf(w.Session), Session: w.Session, Leader: w.Session == v.Leader.Session, Leases: held[w.Session],
			Weight: w.Weight, Max: w.MaxLeases}
		switch {
		case w.Ended:
			info.State = "ended"
		case w.Leaving:
			info.State = "leaving"
		case beating == nil:
			info.State = "unknown"
		case beating[w.Session]:
			info.State = "beating"
		default:
			info.State = "silent"
		}
		d.Workers = append(d.Workers, info)
	}
	slices.SortFunc(d.Leases, func(a, b leaseInfo) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard))
	})
	slices.SortFunc(d.Workers, func(a, b workerInfo) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Session, b.Session))
	})
	return d
}

// text is the description as tables.
func (d description) text() string {
	var b bytes.Buffer
	leader := "nobody leads"
	if d.Leader != nil {
		leader = fmt.Sprintf("%s leads (term %d)", d.Leader.Worker, d.Leader.Term)
	}
	fmt.Fprintf(&b, "Application %s; %s.\n\n", d.App, leader)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSTATE\tLEASES\tSESSION")
	for _, info := range d.Workers {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", info.Worker, info.State, info.Leases, info.Session)
	}
	if len(d.Workers) == 0 {
		fmt.Fprintln(w, "none\t\t\t")
	}
	_ = w.Flush() // into memory
	b.WriteString("\n")
	w = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STREAM\tSHARD\tSTATE\tOWNER\tEPOCH\tLAG\tCHECKPOINT")
	for _, l := range d.Leases {
		owner := cmp.Or(l.Worker, "-")
		if l.Heir != "" {
			owner += " → " + l.Heir
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", l.Stream, strings.TrimPrefix(l.Shard, "shardId-"), l.State, owner, l.Epoch, lagText(l), l.Checkpoint)
	}
	_ = w.Flush() // into memory
	return b.String()
}

func lagText(l leaseInfo) string {
	switch {
	case l.State == "finished":
		return "-"
	case l.Lag == nil:
		return "?"
	case *l.Lag < 1000:
		return fmt.Sprintf("%d ms", *l.Lag)
	case *l.Lag < 120_000:
		return fmt.Sprintf("%.1f s", float64(*l.Lag)/1000)
	}
	return (time.Duration(*l.Lag) * time.Millisecond).Round(time.Second).String()
}

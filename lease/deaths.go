package lease

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-go/weir/shard"
)

// Deaths is what is known of the owners of a lease that died while its position stayed where it is:
// of workers whose beats stopped until the leader ended their sessions. The zero Deaths is none.
//
// A record that kills the process which handles it goes from worker to worker like this. That an
// owner died is weak evidence, because it dies for all of its leases at once. So from a few deaths
// on the next owner handles what follows one record at a time, and says with each what it begins
// ([Deaths.Trial]): a death then is about that record.
type Deaths struct {
	// At is the position at which they died. Those at another position than the lease's say
	// nothing, see [Lease.DeathsHere].
	At    shard.Position
	Count int // owners that died
	Tried int // of which so many died while they handled the first record after At by itself
	Alone int // … and handled no such record of another lease
	// Trial is the epoch at which the owner began to handle the first record after At by itself, 0
	// when it has not, or is done with it.
	Trial uint64
	// Given is the beat count of the owner that the lease was given to after the last death, 0 when
	// it has noted something since. One that dies with the same count never knew that it was the
	// owner, so it did not die of what is here.
	Given uint64
	// Record is the position after the record that was tried last, zero before one was.
	Record shard.Position
	// Beyond says which records after At are done, with keys handled in parallel, or which records
	// before At were given up because they killed their workers, with a sink; "" when none is,
	// or nobody knows. Workers write and read it; at most [Deaths.RoomBeyond] of [a-zA-Z0-9_-]. It
	// is no death, but true for as long as deaths count: until the position is written by anybody.
	Beyond string
	// Since is the epoch at which Beyond was written, 0 without one. Each owner and each [Move]
	// moves the lease's epoch, see [Lease.DeathsHere].
	Since uint64
}

// MaxDeathsBytes bounds [Lease.Deaths].
const MaxDeathsBytes = 400

// mostDeaths bounds the counts.
const mostDeaths = 1_000_000

// String is the form in which stores keep it, without Beyond when that is too long.
func (d Deaths) String() string {
	text := fmt.Sprintf("%d/%d/%d/%d/%d/%s/%s", d.Count, d.Tried, d.Alone, d.Trial, d.Given, d.At, d.Record)
	if beyond := fmt.Sprintf("/%d/%s", d.Since, d.Beyond); d.Beyond != "" && len(text)+len(beyond) <= MaxDeathsBytes {
		text += beyond
	}
	return text
}

// RoomBeyond is how long Beyond may be, with the Since that is there.
func (d Deaths) RoomBeyond() int {
	d.Beyond = ""
	return max(MaxDeathsBytes-len(d.String())-len(fmt.Sprintf("/%d/", d.Since)), 0)
}

// ParseDeaths reads what [Deaths.String] wrote. What is not that says nothing of anybody's death:
// it is the zero Deaths.
func ParseDeaths(s string) Deaths {
	var d Deaths
	var err error
	parts := strings.SplitN(s, "/", 10)
	if len(s) > MaxDeathsBytes || len(parts) != 7 && len(parts) != 9 {
		return Deaths{}
	}
	if len(parts) == 9 {
		if d.Beyond = parts[8]; d.Beyond == "" || strings.ContainsFunc(d.Beyond, notBase64) {
			return Deaths{}
		}
		if d.Since, err = strconv.ParseUint(parts[7], 10, 63); err != nil {
			return Deaths{}
		}
	}
	for i, n := range [...]*int{&d.Count, &d.Tried, &d.Alone} {
		v, err := strconv.ParseUint(parts[i], 10, 32)
		if err != nil || v > mostDeaths {
			return Deaths{}
		}
		*n = int(v)
	}
	for i, n := range [...]*uint64{&d.Trial, &d.Given} {
		if *n, err = strconv.ParseUint(parts[3+i], 10, 63); err != nil {
			return Deaths{}
		}
	}
	if parts[6] != "" {
		if d.Record, err = shard.Parse(parts[6]); err != nil {
			return Deaths{}
		}
	}
	if d.At, err = shard.Parse(parts[5]); err != nil || d.At.IsZero() || d.Tried > d.Count || d.Alone > d.Tried {
		return Deaths{}
	}
	return d
}

func notBase64(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// beyondLasts is for how many epochs [Deaths.Beyond] counts: a release moves the epoch, and so does
// giving the lease to somebody after that. A [Move] between them is one more.
const beyondLasts = 2

// DeathsHere is what [Lease.Deaths] says of the lease's present position. Whatever moves the
// position begins anew by that. Beyond counts for the owner who wrote it and the next one alone:
// nobody can have moved the position meanwhile, not even to where it was, or away and back. So it
// needs no store or client of an earlier version that removes it.
func (l *Lease) DeathsHere() Deaths {
	if l.Deaths == "" {
		return Deaths{}
	}
	d := ParseDeaths(l.Deaths)
	if d.At != l.Position {
		return Deaths{}
	}
	if l.Epoch < d.Since || l.Epoch-d.Since > beyondLasts {
		d.Beyond, d.Since = "", 0
	}
	return d
}

// heldBy is the session that had the lease last: its owner, or the one that it was revoked from and
// that has not acknowledged it.
func (l *Lease) heldBy() string { return cmp.Or(l.Owner, l.Revoked) }

// tries reports whether the holder was handling the first record by itself.
func (l *Lease) tries() bool {
	held := l.Epoch
	if l.Owner == "" && l.Revoked != "" {
		held-- // by the revocation
	}
	d := l.DeathsHere()
	return d.Trial != 0 && d.Trial == held
}

// afterDeath is what is known when the holder has died, too, which at that time handled single
// records of so many leases, and whose last beat count is given.
func (l *Lease) afterDeath(trials int, beat uint64) Deaths {
	d := l.DeathsHere()
	d.At = l.Position
	if knew := d.Given == 0 || d.Given != beat; knew && d.Count < mostDeaths {
		d.Count++
		if l.tries() {
			d.Tried++
			if trials == 1 {
				d.Alone++
			}
		}
	}
	d.Trial = 0
	return d
}

// mourn is what is noted when a lease is given to another, if who had it died: "" if it did not.
// One that was leaving had been told to stop: it may have been killed for taking too long over
// that, and not by a record.
func (p *planner) mourn(e *entry) string {
	by := e.heldBy()
	held := p.sessions[by]
	if held == nil || !held.died {
		return ""
	}
	if p.trials == nil {
		p.trials = map[string]int{}
		for _, e := range p.entries {
			if e.tries() {
				p.trials[e.heldBy()]++
			}
		}
	}
	d := e.afterDeath(p.trials[by], held.beat)
	d.Given = e.to.beat
	return d.String()
}

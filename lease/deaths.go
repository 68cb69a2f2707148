package lease

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-go/weir/shard"
)

// Deaths records which owners of a lease died while its position did not move. An owner died if its
// heartbeats stopped and the leader ended its session. The zero Deaths contains no deaths.
//
// A record that kills its process moves from worker to worker. The death of an owner is weak
// evidence against a record, because it is recorded for all leases of the owner at once. After a
// few deaths the next owner therefore handles the following records one at a time. It announces
// each record before it begins ([Deaths.Trial]). If that owner dies as well, the announced record
// is the probable cause.
type Deaths struct {
	// At is the position at which the owners died. If the lease has another position, the other
	// fields do not count, see [Lease.DeathsHere].
	At    shard.Position
	Count int // number of owners that died
	Tried int // of Count, the owners that died while they tried the first record after At
	Alone int // of Tried, the owners that tried no record of another lease at that time
	// Trial is the epoch at which the owner began to try the first record after At, that is to
	// handle it alone. It is 0 if the owner has not begun or has finished.
	Trial uint64
	// Given is the heartbeat count of the new owner when it got the lease after the last death. It
	// is 0 if that owner has written progress since. If the owner dies with the same count, it
	// never received the lease. In that case this shard did not kill it.
	Given uint64
	// Record is the position after the last record that was tried. It is zero before the first
	// trial.
	Record shard.Position
	// Beyond encodes records that need no handling, although the position does not show it. With
	// parallel handling by key, these are finished records after At. With a sink, these are records
	// before At that were dead-lettered or skipped because they killed their workers. It is "" if
	// there are no such records, or if they are unknown.
	//
	// Workers write and read Beyond. It has at most [Deaths.RoomBeyond] characters of
	// [a-zA-Z0-9_-]. Beyond does not describe deaths. It is dropped when an owner writes the
	// position, as the other fields are, or when the epoch is too far above Since.
	Beyond string
	// Since is the epoch at which Beyond was written, or 0 without Beyond. Each change of owner and
	// each [Move] increases the epoch of the lease, see [Lease.DeathsHere].
	Since uint64
}

// MaxDeathsBytes is the maximum length of [Lease.Deaths].
const MaxDeathsBytes = 400

// mostDeaths is the maximum of each count.
const mostDeaths = 1_000_000

// String returns the stored form. It omits Beyond if the form would be too long.
func (d Deaths) String() string {
	text := fmt.Sprintf("%d/%d/%d/%d/%d/%s/%s", d.Count, d.Tried, d.Alone, d.Trial, d.Given, d.At, d.Record)
	if beyond := fmt.Sprintf("/%d/%s", d.Since, d.Beyond); d.Beyond != "" && len(text)+len(beyond) <= MaxDeathsBytes {
		text += beyond
	}
	return text
}

// RoomBeyond returns the maximum number of bytes of Beyond with the current Since.
func (d Deaths) RoomBeyond() int {
	d.Beyond = ""
	return max(MaxDeathsBytes-len(d.String())-len(fmt.Sprintf("/%d/", d.Since)), 0)
}

// ParseDeaths parses the result of [Deaths.String]. It returns the zero Deaths for any other text.
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

// beyondLasts is the number of increases of the epoch after which [Deaths.Beyond] still counts. A
// release increases the epoch, and so does the next assignment. A [Move] between them would
// increase it once more.
const beyondLasts = 2

// DeathsHere returns the Deaths of the lease at its current position. It is zero once the position
// has moved. Beyond counts until the epoch is more than beyondLasts above Since. If an operator
// moves the position away and back, the two [Move] actions and the next Assign increase the epoch
// so far that Beyond no longer counts. It is therefore harmless if a store or an earlier version of
// weir keeps Beyond when the position moves.
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

// heldBy returns the session that held the lease last. That is its owner, or the session from which
// it was revoked and that has not acknowledged the revocation.
func (l *Lease) heldBy() string { return cmp.Or(l.Owner, l.Revoked) }

// tries reports whether the holder was trying the first record.
func (l *Lease) tries() bool {
	held := l.Epoch
	if l.Owner == "" && l.Revoked != "" {
		held-- // the revocation increased the epoch
	}
	d := l.DeathsHere()
	return d.Trial != 0 && d.Trial == held
}

// afterDeath returns the Deaths to store after the holder has died. trials is the number of the
// holder's leases with a trial. beat is the holder's last heartbeat count.
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

// mourn returns the Deaths to store when a lease gets a new owner. It returns "" if the last owner
// did not die. It also returns "" if that owner was leaving, because it may have been killed for a
// slow stop and not by a record.
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

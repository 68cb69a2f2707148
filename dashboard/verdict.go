package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
)

// state is what a shard, or the application, is in. Later ones are worse.
type state int

const (
	stateFinished state = iota
	stateOK
	stateCatchingUp
	statePaused  // unread, because somebody wanted it
	stateWaiting // unread, because its parents are not finished
	stateFallingBehind
	stateUnread // nobody reads it who should
	stateStalled
	stateRetentionNear
)

func (s state) String() string {
	return [...]string{"finished", "ok", "catching up", "paused", "waiting for its parents", "falling behind", "unread", "stalled", "near the end of retention"}[s]
}

// Class is the state's name in the style sheet.
func (s state) Class() string { return strings.ReplaceAll(s.String(), " ", "-") }

// heat is how much a shard deserves to be seen.
func (s state) heat() int { return max(0, int(s-stateOK)) }

// facts are what is known of one shard.
type facts struct {
	lease  lease.Lease
	paused bool
	waits  []string // parents that are not finished
	// of the owner, if there is one
	owner   string
	life    life
	trouble *lease.Trouble
	living  int // workers that may live
	// how far it is behind, of which the last is now; none when nobody could ask
	lags      []time.Duration
	retention time.Duration // 0 when it is not known
}

// enough is a lag that is none: it comes from reading once a second.
const enough = 10 * time.Second

// judge says what state a shard is in, and why in a sentence that follows its name.
func judge(f facts) (state, string) {
	s, why := judgeReading(f)
	lag, known := f.lag()
	if f.lease.Finished() || !known {
		return s, why
	}
	if f.retention > 0 && lag > f.retention/5*4 {
		return stateRetentionNear, fmt.Sprintf("is %s behind, and records are lost after %s: in %s", short(lag), short(f.retention), short(max(0, f.retention-lag))) + because(s, why)
	}
	if s != stateOK {
		if lag > enough {
			why += ", " + short(lag) + " behind"
		}
		return s, why
	}
	if lag <= enough {
		return stateOK, "is read, " + aheadOr(lag)
	}
	if f.growing() {
		return stateFallingBehind, fmt.Sprintf("is %s behind and falls further behind", short(lag))
	}
	return stateCatchingUp, fmt.Sprintf("is %s behind and catches up", short(lag))
}

func because(s state, why string) string {
	if s == stateOK {
		return ""
	}
	return "; it " + why
}

func aheadOr(lag time.Duration) string {
	if lag < time.Second {
		return "and nothing waits"
	}
	return short(lag) + " behind"
}

// judgeReading is the verdict without the lag.
func judgeReading(f facts) (state, string) {
	l := f.lease
	switch {
	case l.Finished():
		return stateFinished, "was read to its end"
	case l.Owner == "" && l.Revoked != "":
		return stateUnread, "is unread: it was taken from a worker that has not answered yet"
	case l.Owner == "" && f.paused:
		return statePaused, "is unread: it is paused"
	case l.Owner == "" && len(f.waits) > 0:
		return stateWaiting, "is unread: it waits for " + strings.Join(shorts(f.waits), " and ")
	case l.Owner == "" && f.living == 0:
		return stateUnread, "is unread: no worker lives"
	case l.Owner == "":
		return stateUnread, "is unread: no worker holds it"
	case f.life == lifeEnded, f.life == lifeSilent:
		return stateUnread, fmt.Sprintf("is unread: its worker %s is silent", f.owner)
	case f.trouble != nil && f.trouble.State != lease.GaveUp:
		t := f.trouble
		why := fmt.Sprintf("is stalled: %s for %s", t.State, short(t.For))
		if t.Why != "" {
			why += ": " + t.Why
		}
		return stateStalled, why
	case f.trouble != nil:
		return stateOK, fmt.Sprintf("is read; %d of its records were given up lately", f.trouble.Failing.GivenUp)
	case l.Heir == lease.Nobody:
		return statePaused, "is being given back"
	case l.Heir != "":
		return stateOK, "is being handed on"
	}
	return stateOK, "is held by " + f.owner
}

func (f facts) lag() (time.Duration, bool) {
	if len(f.lags) == 0 {
		return 0, false
	}
	return f.lags[len(f.lags)-1], true
}

// growing reports whether no look has seen the lag smaller than the look before it. It takes three.
func (f facts) growing() bool {
	for i := 1; i < len(f.lags); i++ {
		if f.lags[i] < f.lags[i-1] {
			return false
		}
	}
	return len(f.lags) >= 3
}

// short is a time for people: 0 s, 42 s, 3 min, 5 h, 2 d.
func short(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 100*time.Second:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// shortID is a shard's ID without what all of them begin with.
func shortID(id string) string {
	rest := strings.TrimLeft(strings.TrimPrefix(id, "shardId-"), "0")
	if !strings.HasPrefix(id, "shardId-") {
		return id
	}
	if rest == "" {
		return "0"
	}
	return rest
}

func shorts(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = shortID(id)
	}
	return out
}

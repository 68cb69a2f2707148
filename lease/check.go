package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/shard"
)

// These are the limits of stored values. They are the same for all stores, so that an application
// can move to another store.
const (
	MaxAppBytes     = 255 // application name
	MaxNameBytes    = 255 // stream name and shard ID
	MaxSessionBytes = 100 // session
	MaxWorkerBytes  = 200 // display name of a worker
	MaxTroubles     = 20  // troubles in a report
	MaxWhyBytes     = 200 // Trouble.Why
	MaxStateBytes   = 40  // Trouble.State
	MaxPaused       = 100 // paused streams of an application
	// maxTroubleBytes is the maximum size of all troubles of a report together, as JSON. A store
	// keeps them in the same row as the heartbeat count.
	maxTroubleBytes = 3 << 10
	maxParents      = 2
	maxChildren     = 100
)

// CheckApp returns an error for an application name that is not valid in every store. A name has 1
// to [MaxAppBytes] bytes of UTF-8 without a zero byte.
func CheckApp(app string) error { return checkName("the application's name", app, MaxAppBytes) }

// Check validates a report. Every store calls it first. It returns the report that the store must
// execute, or an error that names the invalid field. Text for people is cut to its limit. A Weight
// that is not a finite number above zero becomes 1. A negative MaxLeases becomes 0. Invalid Times
// and Streams become zero. Check does not modify the caller's slices.
func (r Report) Check() (Report, error) {
	if err := checkSession("Report.Session", r.Session); err != nil {
		return r, err
	}
	r.Name = clip(r.Name, MaxWorkerBytes)
	if !(r.Weight > 0) || math.IsInf(r.Weight, 1) {
		r.Weight = 1
	}
	r.MaxLeases = max(r.MaxLeases, 0)
	r.Times, r.Streams = clipTimes(r.Times), clipStreams(r.Streams)
	for _, p := range r.Progress {
		if err := p.check(); err != nil {
			return r, err
		}
	}
	r.Troubles = clipTroubles(r.Troubles)
	return r, nil
}

func (p Progress) check() error {
	if err := checkKey(p.Key); err != nil {
		return err
	}
	switch {
	case p.Epoch > math.MaxInt64:
		return fmt.Errorf("lease: progress of %s: epoch %d is above 2^63-1", p.Key, p.Epoch)
	case p.Load > MaxLoad:
		return fmt.Errorf("lease: progress of %s: load class %d is above %d", p.Key, p.Load, MaxLoad)
	case p.Load != 0 && !rated(p.Rate, p.Load):
		return fmt.Errorf("lease: progress of %s: the rate %d does not have load class %d", p.Key, p.Rate, p.Load)
	case len(p.Children) > maxChildren:
		return fmt.Errorf("lease: progress of %s: %d children are more than %d", p.Key, len(p.Children), maxChildren)
	}
	if err := checkDeaths("progress", p.Key, p.Deaths); err != nil {
		return err
	}
	if err := checkNumbers("progress", p.Key, p.Numbers); err != nil {
		return err
	}
	for _, c := range p.Children {
		k := Key{p.Stream, c.ID}
		if err := checkKey(k); err != nil {
			return err
		}
		if err := checkShard(k, c.Parents, c.Range); err != nil {
			return err
		}
	}
	return nil
}

// Check validates an action, but not its condition. Every store calls it first. It returns an error
// that names the invalid field. Examples are an unknown kind, a missing or too long name, and a
// number above 2^63-1.
func (a Action) Check() error {
	switch a.Kind {
	case Create:
		return a.Lease.check()
	case Assign:
		if a.Session == "" {
			return fmt.Errorf("lease: %s: Session is empty, name the session that shall own the lease", a)
		}
		return errors.Join(a.checkKey(), checkDeaths(a.Kind.String(), a.Key, a.Deaths), checkSession("Session of "+a.Kind.String(), a.Session))
	case Handoff:
		return errors.Join(a.checkKey(), checkHeir("Session of "+a.Kind.String(), a.Session))
	case Revoke, Delete:
		return a.checkKey()
	case Move:
		if a.Born < 0 {
			return fmt.Errorf("lease: %s: Born %d is below zero", a, a.Born)
		}
		return a.checkKey()
	case Replace:
		switch err := errors.Join(a.checkKey(), a.Lease.check()); {
		case err != nil:
			return err
		case a.Lease.Key != a.Key:
			return fmt.Errorf("lease: %s: the new lease is of another shard", a)
		case a.Lease.Epoch <= a.Epoch:
			return fmt.Errorf("lease: %s: the new epoch is not later", a)
		case a.Lease.Owner != "" || a.Lease.Heir != "":
			return fmt.Errorf("lease: %s: the new lease has an owner", a)
		}
		return nil
	case Birth:
		if a.Born <= 0 {
			return fmt.Errorf("lease: %s: Born %d is not above zero", a, a.Born)
		}
		return a.checkKey()
	case EndSession:
		if a.Heartbeats > math.MaxInt64 {
			return fmt.Errorf("lease: %s: the heartbeat count is above 2^63-1", a)
		}
		return checkSession("Session of "+a.Kind.String(), a.Session)
	case Forget, Tell, Drain:
		return checkSession("Session of "+a.Kind.String(), a.Session)
	case Pause:
		if !okPauseNote(a.Note) {
			return fmt.Errorf("lease: the note %.60q of a pause is not at most %d bytes of UTF-8 without control characters", a.Note, MaxPauseNoteBytes)
		}
		if a.Stream == "" {
			return nil
		}
		return checkName("the stream to pause", a.Stream, MaxNameBytes)
	default:
		return fmt.Errorf("lease: %s: unknown kind of action", a)
	}
}

// rated reports whether a rate is absent or has the class load.
func rated(rate uint64, load Load) bool {
	return rate == 0 || rate <= MaxRate && LoadOf(float64(rate)) == load
}

// checkDeaths returns an error if a store may be unable to store this text. The text may be longer
// than the texts of this version, because a later version may write longer ones.
func checkDeaths(what string, k Key, deaths string) error {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if len(deaths) > MaxDeathsBytes || strings.ContainsFunc(deaths, odd) {
		return fmt.Errorf("lease: %s of %s: Deaths %.60q are not at most %d bytes of printable ASCII", what, k, deaths, MaxDeathsBytes)
	}
	return nil
}

// MaxNumbersBytes is the maximum length of [Lease.Numbers].
const MaxNumbersBytes = 2000

// checkNumbers returns an error if a store may be unable to store this text.
func checkNumbers(what string, k Key, numbers string) error {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if len(numbers) > MaxNumbersBytes || strings.ContainsFunc(numbers, odd) {
		return fmt.Errorf("lease: %s of %s: Numbers %.60q are not at most %d bytes of printable ASCII", what, k, numbers, MaxNumbersBytes)
	}
	return nil
}

func (a Action) checkKey() error {
	if a.Epoch > math.MaxInt64 {
		return fmt.Errorf("lease: %s: the epoch is above 2^63-1", a)
	}
	return checkKey(a.Key)
}

func (l Lease) check() error {
	if err := checkKey(l.Key); err != nil {
		return err
	}
	switch {
	case l.Epoch > math.MaxInt64:
		return fmt.Errorf("lease: lease %s: epoch %d is above 2^63-1", l.Key, l.Epoch)
	case l.Load > MaxLoad:
		return fmt.Errorf("lease: lease %s: load class %d is above %d", l.Key, l.Load, MaxLoad)
	case l.Rate > MaxRate:
		return fmt.Errorf("lease: lease %s: rate %d is above %d", l.Key, l.Rate, int64(MaxRate))
	case l.Born < 0:
		return fmt.Errorf("lease: lease %s: Born %d is below zero", l.Key, l.Born)
	}
	for _, s := range [...]string{l.Owner, l.Revoked, l.Last, l.Shunned} {
		if s != "" {
			if err := checkSession("a session of lease "+l.Key.String(), s); err != nil {
				return err
			}
		}
	}
	if err := checkHeir("the heir of lease "+l.Key.String(), l.Heir); err != nil {
		return err
	}
	if err := checkDeaths("lease", l.Key, l.Deaths); err != nil {
		return err
	}
	if err := checkNumbers("lease", l.Key, l.Numbers); err != nil {
		return err
	}
	return checkShard(l.Key, l.Parents, l.Range)
}

func checkShard(k Key, parents []string, r shard.HashRange) error {
	if len(parents) > maxParents {
		return fmt.Errorf("lease: lease %s: %d parents are more than %d", k, len(parents), maxParents)
	}
	for _, p := range parents {
		if err := checkName("a parent of lease "+k.String(), p, MaxNameBytes); err != nil {
			return err
		}
	}
	if _, err := shard.ParseHashRange(r.Start.String(), r.End.String()); err != nil {
		return fmt.Errorf("lease: lease %s: %w", k, err)
	}
	return nil
}

func checkKey(k Key) error {
	if err := checkName("the stream of lease "+clip(k.String(), 80), k.Stream, MaxNameBytes); err != nil {
		return err
	}
	return checkName("the shard of lease "+clip(k.String(), 80), k.Shard, MaxNameBytes)
}

func checkName(what, name string, most int) error {
	if name == "" || len(name) > most || !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("lease: %s is %.60q: want 1 to %d bytes of UTF-8 without a zero byte", what, name, most)
	}
	return nil
}

func checkSession(what, session string) error {
	good := session != "" && len(session) <= MaxSessionBytes
	for i := 0; good && i < len(session); i++ {
		c := session[i]
		good = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == ':' || c == '-'
	}
	if !good {
		return fmt.Errorf("lease: %s is %.60q: a session is 1 to %d of a-z, A-Z, 0-9, . _ : -", what, session, MaxSessionBytes)
	}
	return nil
}

func checkHeir(what, heir string) error {
	if heir == "" || heir == Nobody {
		return nil
	}
	return checkSession(what, heir)
}

// clip cuts s between two characters if s is longer than most bytes. It replaces invalid UTF-8 and
// zero bytes with U+FFFD.
func clip(s string, most int) string {
	if len(s) <= most && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s[:min(len(s), 4*most)], "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// clipTroubles returns the first troubles that fit, and cuts each of them to its limits.
func clipTroubles(troubles []Trouble) []Trouble {
	if len(troubles) == 0 {
		return nil
	}
	kept := make([]Trouble, 0, min(len(troubles), MaxTroubles))
	size := 2
	for _, t := range troubles[:min(len(troubles), MaxTroubles)] {
		t.Stream, t.Shard = clip(t.Stream, MaxNameBytes), clip(t.Shard, MaxNameBytes)
		t.State, t.Why = clip(t.State, MaxStateBytes), clip(t.Why, MaxWhyBytes)
		t.For = max(t.For, 0).Truncate(time.Millisecond)
		f := &t.Failing
		f.At, f.KeyHash, f.Held = clip(f.At, MaxNameBytes), clip(f.KeyHash, MaxStateBytes), clip(f.Held, MaxStateBytes)
		f.Records, f.Attempts, f.GivenUp = max(f.Records, 0), max(f.Attempts, 0), max(f.GivenUp, 0)
		b, err := json.Marshal(t)
		if size += len(b) + 1; err != nil || size > maxTroubleBytes {
			break
		}
		kept = append(kept, t)
	}
	return kept
}

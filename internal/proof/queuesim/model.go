package queuesim

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/queue"
)

// rules are behaviours of the service that its documentation does not define.
type rules struct {
	acceptExpired    bool // a handle is valid until the record is delivered again
	acceptSuperseded bool // all handles of a record are valid
	acceptRepeated   bool // the acknowledgement of an acknowledged record succeeds
	deadOnReceive    bool // a record becomes a dead letter when it would be received once more
	forget           int  // every nth acknowledgement has no effect; 0 for none
}

// record is a record of the queue. The mutex of the world guards it.
type record struct {
	id, key string
	data    []byte
	parts   int // records of the aggregate; 0 for a plain record
	arrived time.Time

	count   int // deliveries
	number  int // of the last delivery
	hidden  time.Time
	gone    bool  // it was acknowledged
	dead    bool  // it is a dead letter of the queue
	holder  *life // the process that has it; nil if it is visible
	since   time.Time
	excused string // why its hold may end, "" if it may not
	late    bool   // its answer took longer than the margin of the hold
	own     int    // deliveries that weir spent without a reason outside of it
	calls   []*call
}

func (r *record) handle() string { return r.id + "#" + strconv.Itoa(r.number) }

// service is the queue. The mutex of the world guards it.
type service struct {
	*world
	rules   rules
	most    int // MaxReceiveCount; 0 for no dead letters
	records map[string]*record
	live    []*record // neither acknowledged nor dead
	numbers int
	acks    int
	changed chan struct{} // closed when a record may be visible
}

// put adds a record.
func (s *service) put(r *record) {
	r.arrived = time.Now()
	s.records[r.id] = r
	s.live = append(s.live, r)
	s.wake()
}

func (s *service) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// settle ends the holds that are over. It returns when the next one ends.
func (s *service) settle(now time.Time) (next time.Time) {
	kept := s.live[:0]
	for _, r := range s.live {
		if r.holder != nil && !r.hidden.After(now) {
			s.expired(r, now)
			s.expose(r)
		}
		if r.holder != nil && (next.IsZero() || r.hidden.Before(next)) {
			next = r.hidden
		}
		if !r.gone && !r.dead {
			kept = append(kept, r)
		}
	}
	clear(s.live[len(kept):])
	s.live = kept
	return next
}

// expose makes a record visible whose hold has ended.
func (s *service) expose(r *record) {
	r.holder = nil
	if s.most > 0 && r.count >= s.most && !s.rules.deadOnReceive {
		s.bury(r)
	}
}

// bury makes a record a dead letter of the queue.
func (s *service) bury(r *record) {
	r.dead = true
	s.buried(r)
}

// receive delivers up to limit records to a process. It returns none if no record is visible.
func (s *service) receive(l *life, limit int, hold time.Duration) (got []*record, out []queue.Delivery, next time.Time) {
	now := time.Now()
	next = s.settle(now)
	var visible []*record
	for _, r := range s.live {
		if r.holder == nil && len(visible) < 64 {
			visible = append(visible, r)
		}
	}
	for _, i := range s.random.Perm(len(visible)) {
		r := visible[i]
		if len(out) == limit {
			break
		}
		if s.most > 0 && r.count >= s.most {
			s.bury(r)
			continue
		}
		s.delivered(r, l, now)
		s.numbers++
		r.count++
		r.number, r.hidden, r.holder, r.since, r.excused, r.late = s.numbers, now.Add(hold), l, now, "", false
		got = append(got, r)
		out = append(out, queue.Delivery{
			ReceiptHandle: r.handle(), RecordID: r.id, PartitionKey: r.key, Data: r.data, Arrived: r.arrived, FirstReceived: now, ReceiveCount: r.count,
		})
	}
	return got, out, next
}

// find returns the record of a handle, or the code of the refusal.
func (s *service) find(handle string) (r *record, code string) {
	id, text, _ := strings.Cut(handle, "#")
	number, _ := strconv.Atoi(text)
	r = s.records[id]
	const missing = "ResourceNotFoundException"
	switch {
	case r == nil || r.dead:
		return r, missing
	case r.gone && s.rules.acceptRepeated:
		return r, ""
	case r.gone:
		return r, missing
	case s.rules.acceptSuperseded:
		return r, ""
	case r.number != number || r.holder == nil && !s.rules.acceptExpired:
		return r, missing
	}
	return r, ""
}

// acknowledge removes the record of a handle.
func (s *service) acknowledge(l *life, handle string) (code string) {
	s.settle(time.Now())
	r, code := s.find(handle)
	if r != nil {
		s.mayAcknowledge(r, l)
	}
	if code != "" || r.gone {
		return code
	}
	if s.acks++; s.rules.forget > 0 && s.acks%s.rules.forget == 0 {
		r.excused = "its acknowledgement was forgotten"
		return ""
	}
	r.gone, r.holder = true, nil
	return ""
}

// setVisibility changes how long a record stays hidden.
func (s *service) setVisibility(l *life, handle string, hold time.Duration) (code string) {
	now := time.Now()
	s.settle(now)
	r, code := s.find(handle)
	if code != "" || r.gone {
		return code
	}
	if hold == 0 {
		s.mayRelease(r, l, now)
		if r.holder != nil {
			s.expose(r)
		}
		s.wake()
		return ""
	}
	r.hidden, r.late = now.Add(hold), false
	if r.holder == nil { // an old handle hides it again
		r.holder, r.since, r.excused = l, now, "an old handle hides it"
	}
	s.wake() // a waiting receive has to look at the time again
	return ""
}

package dynamostore

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
)

// resign makes nobody the leader if session still is at that term. A beat does not fail with it: whoever cannot write the leader's row
// sees in the answer that it leads still, and a beat that failed for this alone would leave a session that counts and is not trusted.
func (s *Store) resign(ctx context.Context, app, session string, term uint64) {
	if end, ok := ctx.Deadline(); ok { // the answer to the beat has to find time after it
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	c := newChange(app, leaderRowKey).remove(attrSession).when(attrTerm, "=", number(term)).when(attrSession, "=", text(session))
	_, _, _ = s.update(ctx, "resign", c, types.ReturnValueNone)
}

// readBeats reads who leads and how far all other sessions have counted.
//
// The rows of the group are next to each other, so one Query brings them, in the place of the request for the leader's two. It is
// paid by size, a read unit for each 4 KB in all: about one for 13 sessions, where the leader's two rows are two. It reads
// consistently, which who leads needs. The counts alone would not: an old one makes a session look dead sooner at most, and the
// write that ends it names the count and is refused. But that would be a second request, and cheaper only above 50 sessions.
func (s *Store) readBeats(ctx context.Context, app, self string) (lease.Leader, []lease.SessionBeat, error) {
	items, err := s.query(ctx, "read the beats", app, groupPrefix, "")
	if err != nil {
		return lease.Leader{}, nil, err
	}
	var (
		leads  leaderRow
		others = make([]lease.SessionBeat, 0, len(items))
	)
	for _, it := range items {
		r := reader{it: it}
		row := r.text(attrRow)
		session, isWorker := strings.CutPrefix(row, workerPrefix)
		switch {
		case row == leaderRowKey:
			if leads, err = decodeLeader(it); err != nil {
				return lease.Leader{}, nil, err
			}
		case isWorker:
			// The leader says what is wrong with a row that cannot be read. It is not to stop everybody's beats.
			beat, ended := r.number(attrBeat, true), r.bool(attrEnded)
			if session != self && r.err == nil && !ended {
				others = append(others, lease.SessionBeat{Session: session, Beat: beat})
			}
		}
	}
	leader := lease.Leader{Term: leads.term}
	for _, o := range others {
		if o.Session == leads.session {
			leader.Session, leader.Beat = o.Session, o.Beat
		}
	}
	if leads.session == self { // its beat is the one under way
		leader.Session = self
	}
	return leader, others, nil
}

// readLeader reads who leads and whether that session lives. Usually it is the one of last time, so both rows come at once.
func (s *Store) readLeader(ctx context.Context, app, reader string) (lease.Leader, error) {
	const what = "read the leader"
	s.mu.Lock()
	guess := s.leaders[app]
	s.mu.Unlock()

	var (
		leads, lives item
		err          error
	)
	if guess == "" || guess == reader {
		leads, err = s.get(ctx, what, app, leaderRowKey)
	} else {
		leads, lives, err = s.getBoth(ctx, what, app, leaderRowKey, workerRowKey(guess))
	}
	if err != nil {
		return lease.Leader{}, err
	}
	l, err := decodeLeader(leads)
	if err != nil {
		return lease.Leader{}, err
	}
	if l.session != guess {
		s.mu.Lock()
		s.leaders[app] = l.session
		s.mu.Unlock()
		lives = nil
	}
	leader := lease.Leader{Term: l.term}
	switch {
	case l.session == "":
		return leader, nil
	case l.session == reader: // its beat is the one under way
		leader.Session = reader
		return leader, nil
	case lives == nil && l.session != guess:
		if lives, err = s.get(ctx, what, app, workerRowKey(l.session)); err != nil {
			return lease.Leader{}, err
		}
	}
	if lives == nil {
		return leader, nil
	}
	w, err := decodeWorker(lives)
	if err != nil || w.Ended {
		return leader, err
	}
	leader.Session, leader.Beat = w.Session, w.Beat
	return leader, nil
}

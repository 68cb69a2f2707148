package dynamostore

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
)

// resign removes the leader if session still leads at the given term. It returns no error. If the
// leader's row cannot be written, the answer to the heartbeat shows that the session still leads.
// The heartbeat itself must not fail, because it has already been counted: other workers would see
// a live session, but its worker would consider its leases invalid.
func (s *Store) resign(ctx context.Context, app, session string, term uint64) {
	if end, ok := ctx.Deadline(); ok { // leave time for the answer to the heartbeat
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	c := newChange(app, leaderRowKey).remove(attrSession).when(attrTerm, "=", number(term)).when(attrSession, "=", text(session))
	_, _, _ = s.update(ctx, "resign", c, types.ReturnValueNone)
}

// readBeats reads the leader and the heartbeat counts of all other sessions that have not ended.
//
// The rows of the group are adjacent, so one Query returns them. It costs one read unit per 4 KB in
// total, which is about 15 sessions. To read only the two rows about the leader would cost two
// units.
//
// The read is consistent, because the leader must be current. The counts need not be current. An
// old count can only make a session look dead too early. The write that would end the session then
// contains the old count, and fails. An eventually consistent read costs half, but it would be a
// second request. The total would be lower only with about 60 sessions or more.
func (s *Store) readBeats(ctx context.Context, app, self string) (lease.Leader, []lease.SessionHeartbeat, error) {
	items, err := s.query(ctx, "read the heartbeats", app, groupPrefix, "")
	if err != nil {
		return lease.Leader{}, nil, err
	}
	var (
		leads   leaderRow
		streams = map[string]lease.Streams{}
		others  = make([]lease.SessionHeartbeat, 0, len(items))
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
			// The leader reports an unreadable row. Such a row must not disturb the heartbeats of
			// all workers.
			beat, ended := r.number(attrBeat, true), r.bool(attrEnded)
			streams[session] = lease.Streams(r.text(attrStreams))
			if session != self && r.err == nil && !ended {
				others = append(others, lease.SessionHeartbeat{Session: session, Heartbeats: beat})
			}
		}
	}
	leader := lease.Leader{Epoch: leads.term}
	for _, o := range others {
		if o.Session == leads.session {
			leader.Session, leader.Heartbeats = o.Session, o.Heartbeats
		}
	}
	if leads.session == self { // the session knows its own heartbeat
		leader.Session = self
	}
	if leader.Session != "" {
		leader.Streams = streams[leader.Session]
	}
	return leader, others, nil
}

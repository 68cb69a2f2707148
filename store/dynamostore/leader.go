package dynamostore

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
)

// resign makes nobody the leader if session still is at that term. A beat does not fail with it:
// whoever cannot write the leader's row sees in the answer that it leads still, and a beat that
// failed for this alone would leave a session that counts and is not trusted.
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
// The rows of the group are next to each other, so one Query brings them. It is paid by size, a
// read unit for each 4 KB in all, which is some 15 sessions; asking for the leader's two rows alone
// would be two. It reads consistently, as who leads has to be read. The counts would not have to
// be: an old one makes a session look dead too soon at most, and the write that ends it names the
// count, and is refused. But to read them so, for half the price, would be a second request, and
// cheaper in all only from some 60 sessions on.
func (s *Store) readBeats(ctx context.Context, app, self string) (lease.Leader, []lease.SessionBeat, error) {
	items, err := s.query(ctx, "read the beats", app, groupPrefix, "")
	if err != nil {
		return lease.Leader{}, nil, err
	}
	var (
		leads   leaderRow
		streams = map[string]lease.Streams{}
		others  = make([]lease.SessionBeat, 0, len(items))
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
			// The leader says what is wrong with a row that cannot be read. It is not to stop
			// everybody's beats.
			beat, ended := r.number(attrBeat, true), r.bool(attrEnded)
			streams[session] = lease.Streams(r.text(attrStreams))
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
	if leader.Session != "" {
		leader.Streams = streams[leader.Session]
	}
	return leader, others, nil
}

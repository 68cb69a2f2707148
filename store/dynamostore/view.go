package dynamostore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
)

// readInFull is the maximum age of leases that a view may reuse. It limits the delay for a change
// that was never announced because its process died.
const readInFull = time.Minute

// View implements [lease.Store].
//
// It reads the rows of the group, which are the workers and the leader. If the leases may have
// changed, it then reads the leases, and the rows of the group again. The revision summarizes the
// first read. It contains the count of announced changes, and the count of freed leases of each
// session. Both increase after the leases changed. Leases that were read after the counts therefore
// contain every counted change, and possibly later ones.
//
// A session announces in advance that it will release leases, and is unsettled until it has
// announced that it released them. While a session is unsettled, every view counts as changed.
// Workers and leader come from the second read. No lease can therefore name a live session that is
// missing in the view.
func (s *Store) View(ctx context.Context, app, since string) (lease.View, error) {
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return lease.View{}, err
	}
	defer cancel()

	began := time.Since(s.born)
	g, err := s.readGroup(ctx, app)
	if err != nil {
		return lease.View{}, err
	}
	sum, settled := g.condense()
	if settled && s.current(app, since, sum, began) {
		v := g.view()
		v.Revision, v.Same = since, true
		return v, nil
	}
	leases, err := s.readLeases(ctx, app, "")
	if err != nil {
		return lease.View{}, err
	}
	if g, err = s.readGroup(ctx, app); err != nil {
		return lease.View{}, err
	}
	v := g.view()
	v.Leases = leases
	v.Revision = fmt.Sprintf("%s/%s/%020d", s.id, sum, began)
	return v, nil
}

// current reports whether the view with the revision since is still valid. The revision must come
// from this Store and must not be too old. The summary in it must equal sum. No announcement of
// this Store may have been lost since then.
func (s *Store) current(app, since, sum string, now time.Duration) bool {
	part := strings.Split(since, "/")
	if len(part) != 3 || part[0] != s.id || part[1] != sum || len(part[2]) != 20 {
		return false
	}
	n, err := strconv.ParseInt(part[2], 10, 64)
	read := time.Duration(n)
	if err != nil || read > now || now-read >= readInFull {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	doubt, any := s.doubt[app]
	return !any || read > doubt
}

// group contains an application's rows without the leases.
type group struct {
	workers []workerRow
	leader  leaderRow
}

func (s *Store) readGroup(ctx context.Context, app string) (group, error) {
	items, err := s.query(ctx, "read the workers", app, groupPrefix, "")
	if err != nil {
		return group{}, err
	}
	return decodeGroup(items)
}

func decodeGroup(items []item) (group, error) {
	var g group
	for _, it := range items {
		r := reader{it: it}
		row := r.text(attrRow)
		switch {
		case row == leaderRowKey:
			l, err := decodeLeader(it)
			if err != nil {
				return group{}, err
			}
			g.leader = l
		case strings.HasPrefix(row, workerPrefix):
			w, err := decodeWorker(it)
			if err != nil {
				return group{}, err
			}
			g.workers = append(g.workers, w)
		}
	}
	return g, nil
}

// condense returns the summary of the group for a revision, and whether all sessions are settled.
func (g group) condense() (string, bool) {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s\n", g.leader.changes, g.leader.token)
	settled := true
	for _, w := range g.workers { // in the order of their rows
		fmt.Fprintf(h, "%q %d\n", w.Session, w.freed)
		settled = settled && !w.unsettled
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), settled
}

func (g group) view() lease.View {
	v := lease.View{Leader: lease.Leader{Epoch: g.leader.term}, Paused: g.leader.paused, PauseNotes: g.leader.notes}
	for _, w := range g.workers {
		v.Workers = append(v.Workers, w.Worker)
	}
	i := slices.IndexFunc(v.Workers, func(w lease.Worker) bool { return w.Session == g.leader.session && !w.Ended })
	if i >= 0 {
		v.Leader.Session, v.Leader.Heartbeats = v.Workers[i].Session, v.Workers[i].Heartbeats
	}
	return v
}

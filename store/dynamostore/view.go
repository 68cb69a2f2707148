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

// readInFull is how old the leases of a view may be that saves reading them. It bounds for how long
// the last net has to wait: a change whose announcement died with its process.
const readInFull = time.Minute

// View implements [lease.Store].
//
// The group's rows are read first, then the leases, then the group's rows again. The revision
// condenses the first read: the count of announced changes and, of each session, the count of what
// it freed. Those counts move after the leases did, so leases that were read after them hold at
// least everything that they announce; that may be more than the revision claims, never less. A
// session that is about to give leases back says so beforehand, and while one is unsettled no view
// is the same as another. Workers and leader are those of the second read, so no lease names a
// living session that is missing.
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

// current reports whether the view that gave the revision since out still stands: it was one of
// this Store, what it condensed is what was read now, it is not too old, and no announcement of
// this Store may have been lost since.
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

// group is an application's rows but for the leases.
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

// condense is what a revision says of the group, and whether all sessions are settled.
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
	v := lease.View{Leader: lease.Leader{Term: g.leader.term}, Paused: g.leader.paused}
	for _, w := range g.workers {
		v.Workers = append(v.Workers, w.Worker)
	}
	i := slices.IndexFunc(v.Workers, func(w lease.Worker) bool { return w.Session == g.leader.session && !w.Ended })
	if i >= 0 {
		v.Leader.Session, v.Leader.Beat = v.Workers[i].Session, v.Workers[i].Beat
	}
	return v
}

package dynamostore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
)

// Limits on the last changed leases in a session's row. The row must stay below one kilobyte, which
// is the unit in which a heartbeat is charged.
const (
	mostNews      = 8
	mostNewsBytes = 400
	// keepNews is how long they stay in the row. They should not stay for long, because every look
	// of the leader reads the rows of all sessions.
	keepNews = 10 * time.Second
)

// news maps sessions to their changed leases. A session with nil reads all of its leases.
type news map[string][]lease.Key

func (n news) add(session string, k lease.Key) {
	if session == "" {
		return
	}
	if keys, there := n[session]; !there || keys != nil {
		n[session] = append(keys, k)
	}
}

// rows returns the entries for the session's row, or nil if there are too many.
func rows(keys []lease.Key) []string {
	all := make([]string, 0, len(keys))
	size := 0
	for _, k := range keys {
		row := leaseRow(k)
		if size += len(row); size > mostNewsBytes {
			return nil
		}
		all = append(all, row)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > mostNews {
		return nil
	}
	return all
}

// tell makes sessions read their changed leases with the next heartbeat. Sessions without a row are
// over.
//
// The row contains only the last note, and the previous value of attrTold. A session whose orders
// are cached under that value reads the leases of the note. A session that missed another note
// meanwhile reads all of its leases. While an announcement of this Store may have been lost, its
// notes name no leases, so that the lost changes are read too.
func (s *Store) tell(ctx context.Context, app string, n news) error {
	s.mu.Lock()
	failed, any := s.doubt[app]
	s.mu.Unlock()
	doubt := any && time.Since(s.born)-failed < readInFull
	sessions := slices.Sorted(maps.Keys(n))
	return parallel(len(sessions), func(i int) error {
		c := newChange(app, workerRowKey(sessions[i])).exists(attrRow)
		if named := rows(n[sessions[i]]); len(named) > 0 && !doubt {
			c.next(attrTold, attrNewsAfter).set(attrNews, &types.AttributeValueMemberSS{Value: named})
		} else {
			c.count(attrTold).remove(attrNews).remove(attrNewsAfter)
		}
		_, _, err := s.update(ctx, "tell session "+sessions[i], c, types.ReturnValueNone)
		return err
	})
}

// stale reports whether a session's row has had news for longer than keepNews. Then the session's
// heartbeat removes them. If that removes a newer note, the session finds that attrTold has changed
// without named leases, and reads all of its leases.
func (s *Store) stale(k orderKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, some := s.news[k]
	return some && time.Since(s.born)-since >= keepNews
}

// saw records whether the row of a session has news.
func (s *Store) saw(k orderKey, row workerRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, some := s.news[k]; some == (len(row.news) > 0) {
		return
	}
	if len(row.news) == 0 {
		delete(s.news, k)
		return
	}
	s.news[k] = time.Since(s.born)
}

// catchUp returns the orders of a session whose cached orders lack only the last note, by reading
// the leases of that note.
func (s *Store) catchUp(ctx context.Context, app string, k orderKey, row workerRow) (held []lease.Lease, ok bool, err error) {
	if len(row.news) == 0 || row.told != row.newsAfter+1 {
		return nil, false, nil
	}
	if held, ok = s.known(k, row.newsAfter); !ok {
		return nil, false, nil
	}
	var mu sync.Mutex
	err = parallel(len(row.news), func(i int) error {
		key, err := parseLeaseRow(row.news[i])
		if err != nil {
			return err
		}
		it, err := s.get(ctx, "read lease "+key.String(), app, row.news[i])
		if err != nil {
			return err
		}
		var l lease.Lease
		if it != nil {
			if l, err = decodeLease(it); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		held = slices.DeleteFunc(held, func(old lease.Lease) bool { return old.Key == key })
		if it != nil && l.Owner == k.session {
			held = append(held, l)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(held, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
	s.remember(k, row.told, held)
	return held, true, nil
}

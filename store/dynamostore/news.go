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

// mostNews and mostNewsBytes limit the list of changed leases in a session's row. The row must stay
// below 1 KB, because a heartbeat is charged per KB.
const (
	mostNews      = 8
	mostNewsBytes = 400
	// keepNews is how long the list stays in the row. It should not stay long, because every view
	// of the leader reads the rows of all sessions.
	keepNews = 10 * time.Second
)

// news maps sessions to their changed leases. A session that is mapped to nil must read all of its
// leases.
type news map[string][]lease.Key

func (n news) add(session string, k lease.Key) {
	if session == "" {
		return
	}
	if keys, there := n[session]; !there || keys != nil {
		n[session] = append(keys, k)
	}
}

// rows returns the entries for the session's row, or nil if they are too many or too long.
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

// tell makes sessions read their changed leases with the next heartbeat. It ignores sessions
// without a row, because they are over.
//
// A note lists the changed leases of a session. A row contains only the last note, and the value of
// attrTold before it. If a session has cached its orders under that value, it only reads the leases
// in the note. If it missed another note, it reads all of its leases. While an announcement of this
// Store may have been lost, the Store's notes list no leases. The sessions then read all of their
// leases, including the lost changes.
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

// stale reports whether a session's row has had news for longer than keepNews. The session's next
// heartbeat then removes the news from the row. If it removes a newer note as well, the session
// sees that attrTold has changed without a note, and reads all of its leases.
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

// catchUp reads the leases of the last note and returns the session's updated orders. It returns
// false if the cached orders lack other changes as well.
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

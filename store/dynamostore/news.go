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

// Bounds of what a session's row says of the leases that were changed last. It has to stay below a
// kilobyte in all, which is what a beat pays for as one write.
const (
	mostNews      = 8
	mostNewsBytes = 400
	// keepNews is for how long they stay there: every look of the leader reads the rows of all
	// sessions.
	keepNews = 10 * time.Second
)

// news are the leases that changed, by session whose orders they are in. A session with nil reads
// all of its leases.
type news map[string][]lease.Key

func (n news) add(session string, k lease.Key) {
	if session == "" {
		return
	}
	if keys, there := n[session]; !there || keys != nil {
		n[session] = append(keys, k)
	}
}

// rows are what the session's row says of it, nil when that would be too much.
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

// tell makes sessions read the leases that changed with the next beat. Those that have no row are
// over.
//
// The row keeps the last note only, and which value told had before it. A session that remembers
// its orders under that value reads the leases of the note; one that missed another note meanwhile
// reads all of its leases. While an announcement of this Store may have been lost, its notes name
// none: what was lost is found with them.
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

// stale reports whether the row of a session has had news for long, which its beat then removes.
// Should that remove a note that came since, the session finds told moved and nothing named, and
// reads all of its leases.
func (s *Store) stale(k orderKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, some := s.news[k]
	return some && time.Since(s.born)-since >= keepNews
}

// saw notes whether the row of a session has news.
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

// catchUp returns the orders of a session that knows them but for the last note, by reading the
// leases of that note.
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

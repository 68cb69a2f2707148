package dynamostore

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/lease"
)

// DefaultTable is the table name of [Options] without a table.
const DefaultTable = "weir"

// Options configures a [Store]. The zero value is ready to use.
type Options struct {
	// Table is the name or the ARN of the table. The default is [DefaultTable].
	Table string
	// Settings are only used by [Store.Migrate].
	Settings Settings
}

// Store implements [lease.Store] on a DynamoDB table. It is safe for concurrent use by any number
// of applications. Any number of Stores in any number of processes may share the table. A Store
// need not be closed.
//
// Each call retries throttled, failed and unanswered requests until its context ends, or for 30
// seconds if the context has no deadline. The client's own retries are not used. If the client's
// HTTP client is the SDK's, or net/http's with an http.Transport, the Store uses separate
// connections with the same settings. The Store replaces these connections if a request is not
// answered in time.
//
// An error wraps [lease.ErrSetup] if the table is missing or has other keys, or if a permission is
// missing.
type Store struct {
	client   *dynamodb.Client
	pool     pool
	table    string
	settings Settings
	id       string    // identifies this Store in its revisions
	born     time.Time // the zero point of times in the revisions

	mu     sync.Mutex // never held during a request
	orders map[orderKey]orders
	// news contains the sessions with news in their rows. The value is the time at which this Store
	// first saw the news, relative to born.
	news map[orderKey]time.Duration
	// doubt contains, by application, when an announcement was last possibly lost, relative to
	// born.
	doubt map[string]time.Duration
}

var (
	_ lease.Store     = (*Store)(nil)
	_ lease.Admin     = (*Store)(nil)
	_ lease.Historian = (*Store)(nil)
)

// New returns a Store. It does no I/O. The first call needs the table.
func New(client *dynamodb.Client, opts Options) *Store {
	if opts.Table == "" {
		opts.Table = DefaultTable
	}
	var p pool
	if client != nil {
		p = ownPool(client.Options().HTTPClient)
	}
	return &Store{
		client: client, pool: p, table: opts.Table, settings: opts.Settings, id: rand.Text(), born: time.Now(),
		orders: map[orderKey]orders{}, doubt: map[string]time.Duration{}, news: map[orderKey]time.Duration{},
	}
}

// Abilities implements [lease.Store].
func (s *Store) Abilities() lease.Abilities {
	return lease.WatchHeartbeats | lease.ResignByHeartbeat | lease.NoteFailures | lease.NoteDeaths | lease.KeepHistory | lease.NoteStreams |
		lease.NoteRates | lease.NotePauses | lease.NoteNumbers
}

type orderKey struct{ app, session string }

// orders contains the leases of a session. They were read after attrTold in the session's row had
// the value told.
type orders struct {
	told uint64
	held []lease.Lease
}

// known returns the cached orders of a session if they were read at this value of attrTold.
func (s *Store) known(k orderKey, told uint64) ([]lease.Lease, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[k]
	if !ok || o.told != told {
		return nil, false
	}
	return cloneLeases(o.held), true
}

func (s *Store) remember(k orderKey, told uint64, held []lease.Lease) {
	held = cloneLeases(held)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[k] = orders{told, held}
}

// subtract copies the cached orders to the next value of attrTold, without the leases at the given
// epochs.
func (s *Store) subtract(k orderKey, told uint64, back map[lease.Key]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[k]
	if !ok || o.told != told {
		return
	}
	kept := slices.Clone(o.held) // another goroutine may be reading the old slice
	kept = slices.DeleteFunc(kept, func(l lease.Lease) bool {
		epoch, given := back[l.Key]
		return given && epoch == l.Epoch
	})
	s.orders[k] = orders{told + 1, kept}
}

func (s *Store) forget(k orderKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.orders, k)
	delete(s.news, k)
}

func cloneLeases(leases []lease.Lease) []lease.Lease {
	leases = slices.Clone(leases)
	for i := range leases {
		leases[i].Parents = slices.Clone(leases[i].Parents)
	}
	return leases
}

// Lead implements [lease.Store].
func (s *Store) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	ctx, cancel, err := s.begin(ctx, app)
	if err != nil {
		return false, err
	}
	defer cancel()
	if err := checkRow("session", workerRowKey(session)); err != nil {
		return false, err
	}
	mark := rand.Text()
	c := newChange(app, leaderRowKey).setText(attrSession, session).set(attrTerm, number(term+1)).set(attrWrite, text(mark))
	if term == 0 {
		c.absent(attrTerm)
	} else {
		c.when(attrTerm, "=", number(term))
	}
	_, ok, err := s.update(ctx, "change the leader", c, types.ReturnValueNone)
	if err != nil || ok {
		return ok, err
	}
	// Perhaps an earlier attempt took effect and only its answer was lost.
	row, err := s.get(ctx, "read the leader", app, leaderRowKey)
	if err != nil {
		return false, err
	}
	r := reader{it: row}
	return r.text(attrWrite) == mark, nil
}

// begin checks the requirements of every call and sets its time limit.
func (s *Store) begin(ctx context.Context, app string) (context.Context, context.CancelFunc, error) {
	if s.client == nil {
		return nil, nil, fmt.Errorf("dynamostore: %w: the client passed to New is nil", lease.ErrSetup)
	}
	if err := lease.CheckApp(app); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("dynamostore: %w", err)
	}
	if _, ok := ctx.Deadline(); ok {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	ctx, cancel := context.WithTimeout(ctx, withoutDeadline)
	return ctx, cancel, nil
}

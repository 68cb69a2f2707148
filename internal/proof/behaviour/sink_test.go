package behaviour

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir"
)

// sink receives the writes of handlers and checks them. It shares no code with weir. It knows which
// records were put, and sees which are handled. Like a careful database, it refuses writes whose
// epoch is lower than one that it has seen for the shard.
type sink struct {
	t *testing.T

	mu  sync.Mutex
	put map[string]int // number of records put for each key: 1, 2, 3, …
	// high contains a number for each key. All records of the key up to this number are handled.
	high    map[string]int
	epochs  map[string]uint64                  // by shard
	active  map[string]map[int]context.Context // handler calls in progress, by shard
	ended   map[string]bool                    // shards whose last batch was handled
	parents map[string][]string
	calls   int
	handled int
	again   int // records handled more than once
	refused int // writes with an old epoch
	shards  map[string]int
}

func newSink(t *testing.T) *sink {
	return &sink{
		t: t, put: map[string]int{}, high: map[string]int{}, epochs: map[string]uint64{},
		active: map[string]map[int]context.Context{}, ended: map[string]bool{}, parents: map[string][]string{}, shards: map[string]int{},
	}
}

// next returns the next payload of a key. Call it in the order of the puts.
func (s *sink) next(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put[key]++
	return []byte(key + " " + strconv.Itoa(s.put[key]))
}

// enter records the start of a handler call, and checks that there is no concurrent call. Call
// leave at the end of the handler call.
func (s *sink) enter(ctx context.Context, b *weir.Batch) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	call := s.calls
	for _, other := range s.active[b.Shard] {
		if other.Err() == nil {
			s.t.Errorf("the leases of two handlers of shard %s are valid at the same time", b.Shard)
		}
	}
	for _, p := range s.parents[b.Shard] {
		if !s.ended[p] {
			s.t.Errorf("shard %s is handled before its parent %s was", b.Shard, p)
		}
	}
	if s.active[b.Shard] == nil {
		s.active[b.Shard] = map[int]context.Context{}
	}
	s.active[b.Shard][call] = ctx
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.active[b.Shard], call)
	}
}

// write accepts the records of a batch. If their epoch is old, it refuses all of them.
func (s *sink) write(b *weir.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Epoch < s.epochs[b.Shard] {
		s.refused++
		return fmt.Errorf("epoch %d of shard %s is old, %d has written", b.Epoch, b.Shard, s.epochs[b.Shard])
	}
	s.epochs[b.Shard] = b.Epoch
	for _, r := range b.Records {
		s.handled++
		s.shards[b.Shard]++
		key, count, _ := strings.Cut(string(r.Data), " ")
		n, err := strconv.Atoi(count)
		if err != nil || key != r.PartitionKey || n < 1 || n > s.put[key] {
			s.t.Errorf("a record that nobody put: key %q, data %q", r.PartitionKey, r.Data)
			continue
		}
		switch high := s.high[key]; {
		case n > high+1:
			s.t.Errorf("shard %s epoch %d: %q is handled although the key has only come to %d", b.Shard, b.Epoch, r.Data, high)
			s.high[key] = n
		case n == high+1:
			s.high[key] = n
		default:
			s.again++
		}
	}
	if b.End {
		s.ended[b.Shard] = true
	}
	return nil
}

// handle is a handler that writes its batch to the sink.
func (s *sink) handle(ctx context.Context, b *weir.Batch) error {
	defer s.enter(ctx, b)()
	return s.write(b)
}

// missing returns the number of records that were put but not handled.
func (s *sink) missing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for key, put := range s.put {
		n += put - s.high[key]
	}
	return n
}

// born tells the sink about a new shard, so that it can check the order when the shard is handled.
func (s *sink) born(child string, parents ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents[child] = parents
}

func (s *sink) judge() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key, put := range s.put {
		if s.high[key] != put {
			keys = append(keys, fmt.Sprintf("%s: %d of %d", key, s.high[key], put))
		}
	}
	slices.Sort(keys)
	if len(keys) > 0 {
		s.t.Errorf("lost: %s", strings.Join(keys, ", "))
	}
}

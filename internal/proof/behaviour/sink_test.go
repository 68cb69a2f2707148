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

// sink is where handlers write, and the judge of what they wrote. It shares nothing with the code
// under test: it knows what was put, and sees what was handled. Like a careful database it refuses
// writes of an epoch lower than one it has seen for the shard.
type sink struct {
	t *testing.T

	mu  sync.Mutex
	put map[string]int // per key, how many were put: 1, 2, 3, …
	// per key, the highest handled with nothing missing before it
	high    map[string]int
	epochs  map[string]uint64                  // per shard
	active  map[string]map[int]context.Context // per shard, the handler calls under way
	ended   map[string]bool                    // shards whose last batch was handled
	parents map[string][]string
	calls   int
	handled int
	again   int // handled more than once
	refused int // writes of an old epoch
	shards  map[string]int
}

func newSink(t *testing.T) *sink {
	return &sink{
		t: t, put: map[string]int{}, high: map[string]int{}, epochs: map[string]uint64{},
		active: map[string]map[int]context.Context{}, ended: map[string]bool{}, parents: map[string][]string{}, shards: map[string]int{},
	}
}

// next is the next payload of key. Call it in the order of the puts.
func (s *sink) next(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put[key]++
	return []byte(key + " " + strconv.Itoa(s.put[key]))
}

// enter records the start of a handler call, and checks for concurrent calls. leave must be called
// at the end of the call.
func (s *sink) enter(ctx context.Context, b *weir.Batch) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	call := s.calls
	for _, other := range s.active[b.Shard] {
		if other.Err() == nil {
			s.t.Errorf("two handlers of shard %s trust their lease at the same time", b.Shard)
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

// write takes the records of a batch, or refuses them all if their epoch is old.
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

// handle is a handler that does just that.
func (s *sink) handle(ctx context.Context, b *weir.Batch) error {
	defer s.enter(ctx, b)()
	return s.write(b)
}

// missing is how many of the records put have not been handled.
func (s *sink) missing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for key, put := range s.put {
		n += put - s.high[key]
	}
	return n
}

// born registers a new shard with the sink, for its checks when the shard is handled.
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

package engine

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// Config configures an Engine. Fields have no defaults: the caller must set all of them.
type Config struct {
	Region, Account string
	NoLimits        bool          // no rate limits
	StateDelay      time.Duration // duration of the states CREATING, UPDATING and DELETING
	ShardLimit      int           // maximum number of open shards in the account
	MaxBytes        int64         // maximum size of the stored records; 0 means no limit
	EndOnEmptyPage  bool          // report the end of a shard on a separate page or event
	RefuseTrimmed   bool          // refuse positions before the trim horizon

	SubscriptionLife    time.Duration // maximum duration of a subscription
	IdleEvents          time.Duration // time without an event before an empty event is sent
	HoldSubscriptions   bool          // a subscription that has ended still blocks the next one
	TakeoverEndsCleanly bool          // a subscription that was taken over ends without an exception

	Queues QueueRules
}

// Engine is one account in one region. It is safe for concurrent use.
type Engine struct {
	cfg    Config
	sealer *sealer
	// identity makes the record IDs of queues unique to this engine.
	identity [16]byte

	mu         sync.Mutex // held only for work in memory, never for I/O
	stateDelay time.Duration
	streams    map[string]*stream
	bySerial   map[uint64]*stream
	queues     map[string]*queue // by ID
	lastSerial uint64            // of streams and queues
	bytes      int64             // size of all stored records
	calls      map[string]*bucket
	policies   map[string]string // resource policies by ARN
	commitment commitment
}

// New returns an engine without streams.
func New(cfg Config) (*Engine, error) {
	s, err := newSealer()
	if err != nil {
		return nil, fmt.Errorf("no randomness for the key of iterators: %w", err)
	}
	e := &Engine{
		cfg: cfg, sealer: s, stateDelay: cfg.StateDelay,
		streams: map[string]*stream{}, bySerial: map[uint64]*stream{}, queues: map[string]*queue{},
		calls: map[string]*bucket{}, policies: map[string]string{},
	}
	_, _ = rand.Read(e.identity[:]) // never fails
	return e, nil
}

// SetStateDelay changes the StateDelay of states that begin later.
func (e *Engine) SetStateDelay(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stateDelay = max(0, d)
}

// Request is a call of one operation. Its Fields decode the body of the call.
type Request interface {
	// Fields returns the destinations of the request's fields.
	Fields() codec.Fields
	// target returns the resources that the request names.
	target(e *Engine) Target
	// do checks the request, carries out the call and writes the answer.
	do(c *call) error
}

// Target contains the resources that a request names. Names that the request does not contain are
// empty.
type Target struct {
	Stream, Shard, Consumer, Queue string
	Records                        int // number of records to put, or of receipt handles
}

// Inject contains faults that only the engine can apply.
type Inject struct {
	// EntryFaults contains an error code for each entry of PutRecords, or of a call with receipt
	// handles, by index. An entry with an empty code is carried out.
	EntryFaults []string
	// EmptyPage makes GetRecords return no records and an iterator for the same position. It makes
	// a receive of a queue return no records without a wait.
	EmptyPage bool
}

// call is the execution of one request.
type call struct {
	*Engine
	action    string
	now       time.Time
	unlimited bool // no rate limits
	inject    Inject
	out       *codec.Encoder
}

// NewRequest returns an empty request of an operation. It returns false if the engine does not
// serve the operation.
func NewRequest(action string) (Request, bool) {
	make, ok := operations[action]
	if !ok {
		return nil, false
	}
	return make(), true
}

// Operations returns the sorted names of the supported operations.
func Operations() []string {
	names := make([]string, 0, len(operations))
	for name := range operations {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Target returns the resources that r names.
func (e *Engine) Target(r Request) Target { return r.target(e) }

// Do carries out a call at the time now and writes the answer to out. Every returned error is an
// *Error. After an error the content of out is invalid.
func (e *Engine) Do(now time.Time, action string, r Request, inject Inject, out *codec.Encoder) error {
	if err := e.admit(now, action, r); err != nil {
		return err
	}
	return r.do(&call{Engine: e, action: action, now: now, unlimited: e.cfg.NoLimits, inject: inject, out: out})
}

// streamRef is the part of a request that names a stream: by name, by ARN, or by both.
type streamRef struct{ name, arn optText }

func (r *streamRef) fields(more ...codec.Field) codec.Fields {
	return append(codec.Fields{{Name: "StreamName", Into: &r.name}, {Name: "StreamARN", Into: &r.arn}}, more...)
}

// validate checks a required reference to a stream. If both the name and the ARN are missing, it
// reports the name as missing, like the service.
func (r *streamRef) validate(v *validator) {
	v.required(r.name.Set || r.arn.Set, "streamName")
	v.name(r.name, "streamName")
	v.streamARN(r.arn, "streamARN")
}

// validateARN checks a required reference to a stream in a request that has no stream name.
func (r *streamRef) validateARN(v *validator) {
	if v.required(r.arn.Set, "streamARN") {
		v.streamARN(r.arn, "streamARN")
	}
}

// stream returns the name of the stream. The reference need not be validated.
func (r *streamRef) stream() string {
	if r.name.Set {
		return r.name.V
	}
	return nameOfARN(r.arn.V)
}

func (r *streamRef) target(*Engine) Target { return Target{Stream: r.stream()} }

func nameOfARN(arn string) string {
	_, rest, ok := strings.Cut(arn, ":stream/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func (e *Engine) arnPrefix() string {
	partition := "aws"
	switch {
	case strings.HasPrefix(e.cfg.Region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(e.cfg.Region, "us-gov-"):
		partition = "aws-us-gov"
	}
	return "arn:" + partition + ":kinesis:" + e.cfg.Region + ":" + e.cfg.Account + ":stream/"
}

// lookup returns the current state of the stream that a request names. The caller holds e.mu.
func (c *call) lookup(r *streamRef) (*stream, error) {
	name := r.stream()
	if r.arn.Set {
		if nameOfARN(r.arn.V) != name {
			return nil, invalid("StreamName %s does not match StreamARN %s.", name, r.arn.V)
		}
		if r.arn.V != c.arnPrefix()+name {
			return nil, notFound("Stream %s is not found: this server has account %s in region %s.", r.arn.V, c.cfg.Account, c.cfg.Region)
		}
	}
	return c.find(name)
}

// find returns the current state of the stream with this name. The caller holds e.mu.
func (c *call) find(name string) (*stream, error) {
	if s := c.streams[name]; s != nil && c.settle(s, c.now) {
		return s, nil
	}
	return nil, notFound("Stream %s under account %s not found.", name, c.cfg.Account)
}

// writable returns the stream like lookup. It fails while the stream is being created or deleted,
// because puts fail then.
func (c *call) writable(r *streamRef) (*stream, error) {
	s, err := c.lookup(r)
	if err == nil && s.status != active && s.status != updating {
		return nil, notFound("Stream %s under account %s not found.", s.name, c.cfg.Account)
	}
	return s, err
}

// active returns the stream like lookup. It fails unless the stream is ACTIVE, because a stream in
// another state cannot be changed.
func (c *call) active(r *streamRef) (*stream, error) {
	s, err := c.lookup(r)
	if err == nil && s.status != active {
		return nil, inUse("Stream %s under account %s not ACTIVE, instead in state %s", s.name, c.cfg.Account, s.status)
	}
	return s, err
}

// StreamARN returns the ARN of the stream with this name. The stream need not exist.
func (e *Engine) StreamARN(name string) string { return e.arnPrefix() + name }

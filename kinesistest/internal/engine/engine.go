package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// Config configures an Engine. All fields must be set.
type Config struct {
	Region, Account string
	NoLimits        bool          // no rate limits
	StateDelay      time.Duration // how long a stream or consumer is CREATING, UPDATING or DELETING
	ShardLimit      int           // open shards of the account
	MaxBytes        int64         // of records; 0 means no limit
	EndOnEmptyPage  bool          // the end of a shard is on a separate page or event
	RefuseTrimmed   bool          // a position before the trim horizon is an error

	SubscriptionLife    time.Duration // maximum duration of a subscription
	IdleEvents          time.Duration // time without an event before an empty one
	HoldSubscriptions   bool          // an ended one also blocks the next one
	TakeoverEndsCleanly bool          // the old one ends without an exception
}

// Engine is one account in one region. It is safe for concurrent use.
type Engine struct {
	cfg    Config
	sealer *sealer

	mu         sync.Mutex // held for memory work only
	stateDelay time.Duration
	streams    map[string]*stream
	bySerial   map[uint64]*stream
	lastSerial uint64
	bytes      int64 // of all stored records
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
	return &Engine{
		cfg: cfg, sealer: s, stateDelay: cfg.StateDelay,
		streams: map[string]*stream{}, bySerial: map[uint64]*stream{},
		calls: map[string]*bucket{}, policies: map[string]string{},
	}, nil
}

// SetStateDelay changes how long later states last.
func (e *Engine) SetStateDelay(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stateDelay = max(0, d)
}

// Request is a call of one operation, decoded by its Fields.
type Request interface {
	// Fields binds the fields of the request.
	Fields() codec.Fields
	// target returns the subject of the request, as far as the request contains it.
	target(e *Engine) Target
	// do checks the request, carries it out and writes the answer.
	do(c *call) error
}

// Target is the subject of a request. Unknown parts are empty.
type Target struct {
	Stream, Shard, Consumer string
	Records                 int // to be put
}

// Inject contains faults that only the engine can apply.
type Inject struct {
	// EntryFaults are error codes for the entries of PutRecords by index.
	EntryFaults []string
	// EmptyPage makes GetRecords return no records and the same position.
	EmptyPage bool
}

// call is one request being carried out.
type call struct {
	*Engine
	action    string
	now       time.Time
	unlimited bool // no rate limits
	inject    Inject
	out       *codec.Encoder
}

// NewRequest returns an empty request of an operation, or false for an
// operation that is not served.
func NewRequest(action string) (Request, bool) {
	make, ok := operations[action]
	if !ok {
		return nil, false
	}
	return make(), true
}

// Operations returns the names of the supported operations, in order.
func Operations() []string {
	names := make([]string, 0, len(operations))
	for name := range operations {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Target returns the subject of r.
func (e *Engine) Target(r Request) Target { return r.target(e) }

// Do carries out a call at the time now and writes the answer to out. After an error, which is
// always an *Error, the content of out is invalid.
func (e *Engine) Do(now time.Time, action string, r Request, inject Inject, out *codec.Encoder) error {
	if err := e.admit(now, action, r); err != nil {
		return err
	}
	return r.do(&call{Engine: e, action: action, now: now, unlimited: e.cfg.NoLimits, inject: inject, out: out})
}

// streamRef is a request's reference to a stream: by name, by ARN, or by both.
type streamRef struct{ name, arn optText }

func (r *streamRef) fields(more ...codec.Field) codec.Fields {
	return append(codec.Fields{{Name: "StreamName", Into: &r.name}, {Name: "StreamARN", Into: &r.arn}}, more...)
}

// validate checks a required reference. If it is missing, the service reports the name as missing.
func (r *streamRef) validate(v *validator) {
	v.required(r.name.Set || r.arn.Set, "streamName")
	v.name(r.name, "streamName")
	v.streamARN(r.arn, "streamARN")
}

// validateARN is validate for requests that name a stream by its ARN only.
func (r *streamRef) validateARN(v *validator) {
	if v.required(r.arn.Set, "streamARN") {
		v.streamARN(r.arn, "streamARN")
	}
}

// stream returns the name in the reference, checked or not.
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

// lookup returns the current state of a request's stream. The caller holds e.mu.
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

// find returns the current state of a stream. The caller holds e.mu.
func (c *call) find(name string) (*stream, error) {
	if s := c.streams[name]; s != nil && c.settle(s, c.now) {
		return s, nil
	}
	return nil, notFound("Stream %s under account %s not found.", name, c.cfg.Account)
}

// writable is lookup for puts, which fail while a stream is created or deleted.
func (c *call) writable(r *streamRef) (*stream, error) {
	s, err := c.lookup(r)
	if err == nil && s.status != active && s.status != updating {
		return nil, notFound("Stream %s under account %s not found.", s.name, c.cfg.Account)
	}
	return s, err
}

// active is lookup for changes, which require a stream in no other change.
func (c *call) active(r *streamRef) (*stream, error) {
	s, err := c.lookup(r)
	if err == nil && s.status != active {
		return nil, inUse("Stream %s under account %s not ACTIVE, instead in state %s", s.name, c.cfg.Account, s.status)
	}
	return s, err
}

// StreamARN returns the ARN of a stream with this name.
func (e *Engine) StreamARN(name string) string { return e.arnPrefix() + name }

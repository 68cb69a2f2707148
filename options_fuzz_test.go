package weir

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// optionRules has a rule for each field of Options. A rule reports whether the documentation allows
// the field's value, after the defaults were set. A field without a rule fails the tests.
var optionRules = map[string]func(o *Options) bool{
	"App":             func(o *Options) bool { return aName.MatchString(o.App) },
	"Streams":         streamsAreGood,
	"DiscoverStreams": nil, // any, and none where there is a stream
	"Shards": func(o *Options) bool {
		odd := func(id string) bool {
			return id == "" || len(id) > 255 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
		}
		return len(o.Shards) == 0 || len(o.Streams) == 1 && o.DiscoverStreams == nil && !slices.ContainsFunc(o.Shards, odd)
	},
	"Worker":              func(o *Options) bool { return o.Worker != "" && len(o.Worker) <= 200 },
	"Start":               func(o *Options) bool { return o.Start == Oldest || o.Start == Latest || o.Start.Kind() == shard.Time },
	"Expired":             func(o *Options) bool { return among(o.Expired, FailExpired, OldestExpired, LatestExpired) },
	"Batching.MaxRecords": func(o *Options) bool { return inRange(o.Batching.MaxRecords, 1, 10_000) },
	"Batching.MaxBytes":   func(o *Options) bool { return inRange(o.Batching.MaxBytes, 0, 1<<30) },
	"Batching.MaxWait": func(o *Options) bool {
		return o.Batching.MaxWait == 0 || inRange(o.Batching.MaxWait, time.Millisecond, 5*time.Minute) && o.Concurrency.Keys <= 1
	},
	"DropRepeats": func(o *Options) bool { return !o.DropRepeats || o.Aggregates != KeepPacked },
	"Aggregates":  func(o *Options) bool { return among(o.Aggregates, Unpack, UnpackOwn, KeepPacked) },
	"FanOut.Mode": func(o *Options) bool {
		return among(o.FanOut.Mode, FanOutOff, FanOutExisting, FanOutRegister, FanOutTemporary)
	},
	"FanOut.Name": func(o *Options) bool {
		return o.FanOut.Name == o.App || o.FanOut.Mode != FanOutOff && aName.MatchString(o.FanOut.Name)
	},
	"FanOut.ARNs": func(o *Options) bool {
		byName := map[string]string{}
		for _, arn := range o.FanOut.ARNs {
			m := aConsumer.FindStringSubmatch(arn)
			if m == nil || o.FanOut.Mode == FanOutOff || byName[m[2]] != "" && byName[m[2]] != arn {
				return false
			}
			byName[m[2]] = arn
			given := func(s string) bool { return s == m[1] || s == m[2] }
			foreign := func(s string) bool { return s != m[1] && strings.HasSuffix(s, ":stream/"+m[2]) && anARN.MatchString(s) }
			if !slices.ContainsFunc(o.Streams, given) && o.DiscoverStreams == nil || slices.ContainsFunc(o.Streams, foreign) {
				return false
			}
		}
		return true
	},
	"Transport":                func(o *Options) bool { return among(o.Transport, AutoTransport, SDKTransport) },
	"MaxMemory":                func(o *Options) bool { return inRange(o.MaxMemory, 16<<20, 1<<40) },
	"Polling.IdleInterval":     func(o *Options) bool { return inRange(o.Polling.IdleInterval, 200*time.Millisecond, time.Minute) },
	"Polling.Share":            func(o *Options) bool { return inRange(o.Polling.Share, 0.01, 1) },
	"Retry.MinBackoff":         func(o *Options) bool { return inRange(o.Retry.MinBackoff, time.Millisecond, time.Hour) },
	"Retry.MaxBackoff":         func(o *Options) bool { return inRange(o.Retry.MaxBackoff, o.Retry.MinBackoff, 24*time.Hour) },
	"Timing.HeartbeatInterval": func(o *Options) bool { return inRange(o.Timing.HeartbeatInterval, 100*time.Millisecond, time.Minute) },
	"Timing.FailoverAfter":     func(o *Options) bool { return inRange(o.Timing.FailoverAfter, 3*o.Timing.HeartbeatInterval, time.Hour) },
	"Timing.HandoffTimeout": func(o *Options) bool {
		return inRange(o.Timing.HandoffTimeout, o.Timing.HeartbeatInterval, 24*time.Hour)
	},
	"Timing.StopTimeout": func(o *Options) bool { return inRange(o.Timing.StopTimeout, time.Millisecond, 24*time.Hour) },
	"Timing.StallAfter": func(o *Options) bool {
		least := 30 * time.Second
		if among(o.FanOut.Mode, FanOutExisting, FanOutRegister, FanOutTemporary) {
			least = 2 * time.Minute
		}
		return inRange(o.Timing.StallAfter, least, 24*time.Hour)
	},
	"Timing.HandlerTimeout": func(o *Options) bool {
		return o.Timing.HandlerTimeout == 0 || inRange(o.Timing.HandlerTimeout, time.Second, 24*time.Hour)
	},
	"Filter": func(o *Options) bool {
		return among(o.Filter.NotJSON, PassNotJSON, DropNotJSON, FailNotJSON) && (o.Filter.By != nil || o.Filter.NotJSON == PassNotJSON)
	},
	"OnFailure": func(o *Options) bool {
		g := o.OnFailure
		if g.SuspectAfter > 1000 {
			return false
		}
		g.SuspectAfter = 0
		return g == FailurePolicy{} || g.Destination != nil && inRange(g.MaxAttempts, 0, 10_000) && (g.MaxAge == 0 || inRange(g.MaxAge, time.Second, 366*24*time.Hour)) &&
			g.OutageGrace <= 24*time.Hour && g.MaxPerMinute <= 1_000_000
	},
	"Concurrency": func(o *Options) bool {
		p := o.Concurrency
		if p.Keys == 0 || p.Keys == 1 {
			return p == Concurrency{Keys: p.Keys}
		}
		if p.Keys < 0 || p.Keys > 10_000 {
			return false
		}
		return inRange(p.MaxCalls, 1, 100_000) && inRange(p.MaxRecords, 100, 1_000_000) && inRange(p.MaxBytes, 1<<20, 1<<30) &&
			(p.MaxAge == 0 || inRange(p.MaxAge, time.Second, 24*time.Hour))
	},
	"NoHistory":           func(*Options) bool { return true },
	"ReuseBuffers":        func(o *Options) bool { return !o.ReuseBuffers || o.Concurrency.Keys == 0 || o.Concurrency.Keys == 1 },
	"Timing.ListInterval": func(o *Options) bool { return inRange(o.Timing.ListInterval, time.Second, time.Hour) },
	"Weight":              func(o *Options) bool { return o.Weight > 0 && o.Weight <= math.MaxFloat64 },
	"MaxLeases":           func(o *Options) bool { return o.MaxLeases >= 0 },
	"OnEvent":             nil,
	"Logger":              func(o *Options) bool { return o.Logger != nil },
}

// optionFields are the fields of Options. A group whose fields are independent of each other counts
// as its fields, which are named "Group.Field".
var optionFields = func() (all []reflect.StructField) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Options]()) {
		switch reflect.Zero(field.Type).Interface().(type) {
		case Batching, FanOut, Polling, Retry, Timing:
			for _, inner := range reflect.VisibleFields(field.Type) {
				inner.Name, inner.Index = field.Name+"."+inner.Name, append(slices.Clone(field.Index), inner.Index...)
				all = append(all, inner)
			}
		default:
			all = append(all, field)
		}
	}
	return all
}()

var (
	aName     = regexp.MustCompile(`\A[\w.-]{1,128}\z`)
	aConsumer = regexp.MustCompile(`\A(arn:[a-z0-9-]+:kinesis:eu-west-1:\d{12}:stream/([\w.-]{1,128}))/consumer/[\w.-]{1,128}:\d{1,20}\z`)
	anARN     = regexp.MustCompile(`\Aarn:[a-z0-9-]+:kinesis:eu-west-1:\d{12}:stream/([\w.-]{1,128})\z`)
)

func inRange[T cmp.Ordered](v, least, most T) bool { return least <= v && v <= most }

func among[T comparable](v T, all ...T) bool { return slices.Contains(all, v) }

func streamsAreGood(o *Options) bool {
	byName := map[string]string{}
	for _, s := range o.Streams {
		name := s
		if m := anARN.FindStringSubmatch(s); m != nil {
			name = m[1]
		} else if !aName.MatchString(s) {
			return false
		}
		if other, twice := byName[name]; twice && other != s {
			return false
		}
		byName[name] = s
	}
	return len(o.Streams) > 0 || o.DiscoverStreams != nil
}

// defaults returns o with the documented default in place of each zero.
func defaults(o Options) Options {
	if o.Worker == "" {
		o.Worker = "host-1"
	}
	if o.Start.IsZero() {
		o.Start = Oldest
	}
	o.Batching.MaxRecords, o.MaxMemory = cmp.Or(o.Batching.MaxRecords, 10_000), cmp.Or(o.MaxMemory, 128<<20)
	o.FanOut.Name = cmp.Or(o.FanOut.Name, o.App)
	o.Polling.IdleInterval, o.Polling.Share, o.Weight = cmp.Or(o.Polling.IdleInterval, time.Second), cmp.Or(o.Polling.Share, 1), cmp.Or(o.Weight, 1)
	o.Retry.MinBackoff = cmp.Or(o.Retry.MinBackoff, 100*time.Millisecond)
	o.Retry.MaxBackoff = cmp.Or(o.Retry.MaxBackoff, max(30*time.Second, o.Retry.MinBackoff))
	o.Timing.HeartbeatInterval = cmp.Or(o.Timing.HeartbeatInterval, time.Second)
	o.Timing.FailoverAfter = cmp.Or(o.Timing.FailoverAfter, max(5*time.Second, 3*o.Timing.HeartbeatInterval))
	o.Timing.HandoffTimeout = cmp.Or(o.Timing.HandoffTimeout, max(30*time.Second, o.Timing.FailoverAfter))
	o.Timing.StopTimeout, o.Timing.StallAfter = cmp.Or(o.Timing.StopTimeout, 30*time.Second), cmp.Or(o.Timing.StallAfter, 2*time.Minute)
	o.OnFailure.SuspectAfter = cmp.Or(o.OnFailure.SuspectAfter, 2)
	o.Timing.ListInterval = cmp.Or(o.Timing.ListInterval, time.Minute)
	if o.OnFailure.Destination != nil {
		o.OnFailure.OutageGrace, o.OnFailure.MaxPerMinute = cmp.Or(o.OnFailure.OutageGrace, 2*time.Minute), cmp.Or(o.OnFailure.MaxPerMinute, 60)
	}
	if p := &o.Concurrency; p.Keys > 1 {
		p.MaxCalls, p.MaxRecords, p.MaxBytes = cmp.Or(p.MaxCalls, 4*p.Keys), cmp.Or(p.MaxRecords, 10_000), cmp.Or(p.MaxBytes, 16<<20)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// The values that fields get, by type. Zeros come first.
var (
	someDurations = around(0, time.Millisecond, 100*time.Millisecond, 200*time.Millisecond, time.Second, 3*time.Second, 30*time.Second, time.Minute,
		2*time.Minute, 3*time.Minute, 5*time.Minute, time.Hour, 24*time.Hour)
	someInts   = append(around(0, 1, 10_000, 16<<20, 1<<30, 1<<40), math.MinInt, math.MaxInt)
	someFloats = []float64{0, 1, 0.01, 0.5, math.Nextafter(0.01, 0), math.Nextafter(1, 2), -1, 1e300, math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64}
	someTexts  = []string{"", "billing", "orders", strings.Repeat("n", 128), strings.Repeat("n", 129), strings.Repeat("w", 200), strings.Repeat("w", 201), "a b", "a\n", "\xff",
		"arn:aws:kinesis:eu-west-1:000000000000:stream/orders", "arn:aws:kinesis:us-east-1:000000000000:stream/orders", "arn:aws:kinesis:eu-west-1:1:stream/", "%!s\x1b[2J",
		"arn:aws:kinesis:eu-west-1:000000000000:stream/orders/consumer/billing:1700000000", "arn:aws:kinesis:us-east-1:000000000000:stream/orders/consumer/billing:1", "arn:aws:kinesis:eu-west-1:000000000001:stream/orders/consumer/billing:1"}
	someStarts = []Position{{}, Oldest, Latest, At(time.Unix(0, 0)), At(time.Unix(-1<<40, 1)), shard.End, must(shard.After("17")), must(shard.Part("17", 3))}
)

func around[T int | time.Duration](bounds ...T) (all []T) {
	for _, b := range bounds {
		all = append(all, b, b-1, b+1)
	}
	return all
}

func must(p Position, err error) Position {
	if err != nil {
		panic(err)
	}
	return p
}

// choices returns the values of a field to try, the zero value first.
func choices(t testing.TB, field reflect.StructField) []any {
	switch v := reflect.Zero(field.Type).Interface().(type) {
	case string:
		return anys(someTexts)
	case []string:
		all := []any{v}
		for _, s := range someTexts {
			all = append(all, []string{s}, []string{"orders", s})
		}
		return all
	case time.Duration:
		return anys(someDurations)
	case int:
		return anys(someInts)
	case float64:
		return anys(someFloats)
	case bool:
		return []any{false, true}
	case Position:
		return anys(someStarts)
	case ExpiredPolicy:
		return []any{FailExpired, OldestExpired, LatestExpired, LatestExpired + 1, FailExpired - 1}
	case Aggregates:
		return []any{Unpack, UnpackOwn, KeepPacked, KeepPacked + 1, Unpack - 1}
	case FanOutMode:
		return []any{FanOutOff, FanOutRegister, FanOutExisting, FanOutTemporary, FanOutTemporary + 1, FanOutOff - 1}
	case Transport:
		return []any{AutoTransport, SDKTransport, SDKTransport + 1, AutoTransport - 1}
	case func(context.Context) ([]string, error):
		return []any{v, func(context.Context) ([]string, error) { return nil, nil }}
	case func(context.Context, event.Event):
		return []any{v, func(context.Context, event.Event) {}}
	case Filter:
		return []any{v, Filter{By: all{}}, Filter{By: all{}, NotJSON: FailNotJSON}, Filter{By: all{}, NotJSON: FailNotJSON + 1}, Filter{NotJSON: DropNotJSON}, Filter{NotJSON: PassNotJSON - 1}}
	case FailurePolicy:
		to := deadletter.File("letters") // comparable, as a func is not
		all := []any{v, FailurePolicy{Destination: to}, FailurePolicy{MaxAttempts: 3}, FailurePolicy{Bisect: true}, FailurePolicy{Destination: to, Bisect: true, MaxAttempts: 3, MaxAge: time.Hour}}
		for _, n := range around(0, 1000, 10_000, 1_000_000) {
			all = append(all, FailurePolicy{SuspectAfter: n}, FailurePolicy{Destination: to, SuspectAfter: n}, FailurePolicy{Destination: to, MaxAttempts: n}, FailurePolicy{Destination: to, MaxPerMinute: n})
		}
		for _, d := range around(0, time.Second, 24*time.Hour, 366*24*time.Hour) {
			all = append(all, FailurePolicy{Destination: to, MaxAge: d}, FailurePolicy{Destination: to, OutageGrace: d})
		}
		return all
	case Concurrency:
		all := []any{v, Concurrency{Keys: 64}, Concurrency{Keys: 1}, Concurrency{MaxRecords: 100}, Concurrency{Keys: 1, MaxCalls: 1}}
		for _, n := range around(2, 100, 10_000, 100_000, 1<<20, 1<<30) {
			all = append(all, Concurrency{Keys: n}, Concurrency{Keys: 8, MaxCalls: n}, Concurrency{Keys: 8, MaxRecords: n}, Concurrency{Keys: 8, MaxBytes: n})
		}
		for _, d := range around(0, time.Second, 24*time.Hour) {
			all = append(all, Concurrency{Keys: 8, MaxAge: d})
		}
		return all
	case *slog.Logger:
		return []any{v, slog.New(slog.NewTextHandler(io.Discard, nil))}
	}
	t.Fatalf("Options.%s is of a type that no test sets: %s", field.Name, field.Type)
	return nil
}

func anys[T any](values []T) (all []any) {
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

var atNewClient = kinesis.New(kinesis.Options{Region: "eu-west-1"})

// checkNew checks that New follows the rules. If o breaks rules, New must fail and name exactly the
// fields of these rules. Otherwise New must fill in the defaults.
func checkNew(t *testing.T, o Options) {
	t.Helper()
	want := defaults(o)
	var bad []string
	for name, rule := range optionRules {
		if rule != nil && !rule(&want) {
			bad = append(bad, name)
		}
	}
	if o.FanOut.Name != "" && o.FanOut.Name == o.App && (o.FanOut.Mode == FanOutOff || !aName.MatchString(o.App)) {
		bad = append(bad, "FanOut.Name") // it may only be said where it has a meaning
	}
	slices.Sort(bad)
	c, err := New(atNewClient, memstore.New(), o)
	if err != nil {
		if named := fieldsNamed(t, err); c != nil || !slices.Equal(named, bad) {
			t.Errorf("%+v: %v names %q, want %q", o, err, named, bad)
		}
		return
	}
	if len(bad) > 0 {
		t.Fatalf("%+v: New takes a wrong %q", o, bad)
	}
	got := c.opts
	if o.Worker == "" {
		want.Worker = got.Worker
	}
	for _, field := range optionFields {
		if rule := optionRules[field.Name]; rule != nil && !rule(&got) {
			t.Errorf("%+v: Options.%s was filled in as %v", o, field.Name, reflect.ValueOf(got).FieldByIndex(field.Index))
		}
		a, b := fmt.Sprintf("%v", reflect.ValueOf(got).FieldByIndex(field.Index)), fmt.Sprintf("%v", reflect.ValueOf(want).FieldByIndex(field.Index))
		if a != b {
			t.Errorf("%+v: Options.%s was filled in as %s, want %s", o, field.Name, a, b)
		}
	}
}

// fieldsNamed returns the fields that the lines of an error name, sorted.
func fieldsNamed(t *testing.T, err error) (named []string) {
	t.Helper()
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSuffix(line, "\n")
		name, _, ofOptions := strings.Cut(strings.TrimPrefix(line, "weir: Options."), " ")
		switch {
		case strings.HasPrefix(name, "OnFailure."):
			name = "OnFailure"
		case strings.HasPrefix(name, "Filter."):
			name = "Filter"
		case strings.HasPrefix(name, "Concurrency."):
			name = "Concurrency"
		case strings.HasPrefix(line, "weir: stream "), strings.HasPrefix(line, `weir: "arn:`):
			name = "Streams"
		case !ofOptions || !strings.HasPrefix(line, "weir: Options."):
			t.Errorf("the line %q names no field", line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(line) > 2000 {
			t.Errorf("the line %q", line)
		}
		named = append(named, name)
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// The test tries every field at and beyond its bounds: without further options, with fan-out, with
// DiscoverStreams, with longer times, and without the required options.
func TestOptionsAtTheirBounds(t *testing.T) {
	if len(optionFields) != len(optionRules) {
		t.Errorf("%d fields and %d rules", len(optionFields), len(optionRules))
	}
	for _, field := range optionFields {
		if _, known := optionRules[field.Name]; !known {
			t.Errorf("Options.%s has no rule", field.Name)
		}
		for _, value := range choices(t, field) {
			for _, base := range []Options{
				{App: "billing", Streams: []string{"orders"}},
				{App: "billing", Streams: []string{"orders"}, FanOut: FanOut{Mode: FanOutRegister, Name: "billing-2"}},
				{App: "billing", DiscoverStreams: func(context.Context) ([]string, error) { return nil, nil }},
				{App: "billing", Streams: []string{"orders"}, Timing: Timing{HeartbeatInterval: time.Minute, FailoverAfter: 4 * time.Minute}, Retry: Retry{MinBackoff: time.Hour}},
				{},
			} {
				set(&base, field, value)
				checkNew(t, base)
			}
		}
	}
	if _, err := New(nil, nil, Options{App: "a", Streams: []string{"s"}}); err == nil || strings.Count(err.Error(), " is nil; ") != 2 {
		t.Errorf("without a client and a store: %v", err)
	}
	if _, err := New(atNewClient, lease.Store(nil), Options{App: "a", Streams: []string{"s"}}); err == nil {
		t.Error("without a store")
	}
}

func set(o *Options, field reflect.StructField, value any) {
	reflect.ValueOf(o).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(value))
}

// FuzzOptions passes New the options that a program may read from a file. Each field uses one byte,
// which selects one of the values of its type, or, from 128 on, makes the following bytes the
// value. When the bytes are used up, a field keeps its default.
func FuzzOptions(f *testing.F) {
	fields := optionFields
	at := func(chosen map[string][]byte) (b []byte) {
		for _, field := range fields {
			if c := chosen[field.Name]; c != nil {
				b = append(b, c...)
			} else {
				b = append(b, map[string]byte{"App": 1, "Streams": 4}[field.Name])
			}
		}
		return b
	}
	f.Add([]byte(nil))
	f.Add(at(nil))
	for _, field := range fields {
		f.Add(at(map[string][]byte{field.Name: {1}, "FanOut.Mode": {1}}))
		f.Add(at(map[string][]byte{field.Name: {5}}))
		f.Add(at(map[string][]byte{field.Name: append([]byte{128}, 0, 0, 0, 0, 0, 0, 0, 9)}))
		f.Add(at(map[string][]byte{field.Name: append([]byte{255}, 255, 255, 255, 255, 255, 255, 255, 255)}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var o Options
		for _, field := range fields {
			if len(b) == 0 {
				break
			}
			how := b[0]
			b = b[1:]
			all := choices(t, field)
			value := all[int(how)%len(all)]
			if how >= 128 {
				value, b = raw(value, b)
			}
			set(&o, field, value)
		}
		checkNew(t, o)
	})
}

// raw reads a value of like's type from b. It returns like itself if values of that type cannot be
// made from bytes.
func raw(like any, b []byte) (value any, rest []byte) {
	var word [8]byte
	switch like.(type) {
	case string, []string:
		n := 0
		if len(b) > 0 {
			n, b = int(b[0]), b[1:]
		}
		n = min(n, len(b))
		if _, one := like.(string); one {
			return string(b[:n]), b[n:]
		}
		return strings.Split(string(b[:n]), ","), b[n:]
	case int, time.Duration, float64, ExpiredPolicy, Aggregates, FanOutMode, Transport, Position:
		b = b[copy(word[:], b):]
	default:
		return like, b
	}
	n := binary.BigEndian.Uint64(word[:])
	switch like.(type) {
	case float64:
		return math.Float64frombits(n), b
	case Position:
		return At(time.UnixMilli(int64(n))), b
	}
	return reflect.ValueOf(int64(n)).Convert(reflect.TypeOf(like)).Interface(), b
}

// all is a filter that drops nothing.
type all struct{}

func (all) Match([]byte, string, time.Time) (matches, isJSON bool) { return true, true }

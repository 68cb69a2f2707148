package producer

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weir-go/weir/shard"
)

func TestWhatAnswersMean(t *testing.T) {
	t.Parallel()
	status := func(n int, err error) error {
		return &smithy.OperationError{Err: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: n}}, Err: err}}
	}
	api := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	for name, c := range map[string]struct {
		err  error
		want outcome
	}{
		"a shard without room":         {status(400, &types.ProvisionedThroughputExceededException{}), throttled},
		"a limit of the account":       {status(400, &types.LimitExceededException{}), postponed},
		"a stream that is changed":     {status(400, &types.ResourceInUseException{}), postponed},
		"too many calls of a key":      {status(400, &types.KMSThrottlingException{}), postponed},
		"a proxy that has enough":      {status(429, api("")), postponed},
		"a failure of the service":     {status(500, &types.InternalFailureException{}), unknown},
		"a failure without a code":     {status(503, api("UnknownError")), unknown},
		"a fault of the server":        {&smithy.GenericAPIError{Code: "Odd", Fault: smithy.FaultServer}, unknown},
		"a broken connection":          {&smithy.OperationError{Err: io.ErrUnexpectedEOF}, unknown},
		"an answer that is not read":   {status(200, io.ErrUnexpectedEOF), unknown},
		"a request that took too long": {status(408, api("RequestTimeout")), unknown},
		"credentials that expired":     {status(400, api("ExpiredTokenException")), unsigned},
		"a clock that is wrong":        {status(403, api("RequestTimeTooSkewed")), unsigned},
		"a record that is wrong":       {status(400, api("ValidationException")), invalid},
		"an argument that is wrong":    {status(400, &types.InvalidArgumentException{}), invalid},
		"no permission":                {status(400, &types.AccessDeniedException{}), refused},
		"no stream":                    {status(400, &types.ResourceNotFoundException{}), refused},
		"a key that is disabled":       {status(400, &types.KMSDisabledException{}), refused},
		"a dry run":                    {status(400, api("DryRunOperationException")), refused},
		"a code that is not known":     {status(400, api("SomethingNewException")), refused},
		"a request that is not made":   {&smithy.SerializationError{Err: errors.New("odd")}, refused},
	} {
		if got := classifyCall(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		entry entry
		want  outcome
	}{
		"stored":                   {entry{Shard: "a", SequenceNumber: "1"}, stored},
		"no sequence number":       {entry{Shard: "a"}, unknown},
		"no shard":                 {entry{SequenceNumber: "1"}, unknown},
		"nothing at all":           {entry{}, unknown},
		"no room":                  {entry{Code: "ProvisionedThroughputExceededException"}, throttled},
		"a failure":                {entry{Code: "InternalFailure"}, unknown},
		"a code that is not known": {entry{Code: "SomethingNew"}, unknown},
		"a key":                    {entry{Code: "KMSThrottlingException"}, postponed},
		"a key that is denied":     {entry{Code: "KMSAccessDeniedException"}, refused},
	} {
		if got := classifyEntry(c.entry); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestPausesGrowAndEnd(t *testing.T) {
	t.Parallel()
	for o, most := range map[outcome]time.Duration{throttled: 2 * time.Second, postponed: 10 * time.Second, unsigned: 10 * time.Second, unknown: 5 * time.Second} {
		first, last := pauseAfter(o, 1), pauseAfter(o, 1000)
		if first <= 0 || first > time.Second || last < most/2 || last > most {
			t.Errorf("outcome %d: the pauses are %v to %v, want up to %v", o, first, last, most)
		}
	}
	if a, b := callTimeout(0), callTimeout(mostBytes); a != 5*time.Second || b != 25*time.Second {
		t.Errorf("calls end after %v to %v", a, b)
	}
}

func TestWhenAShardIsDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for name, c := range map[string]struct {
		standing standing
		want     time.Duration // from now; negative: not known
	}{
		"a new record lingers":              {standing{oldest: now, linger: ms(50)}, ms(50)},
		"an old one does not":               {standing{oldest: now.Add(-ms(60)), linger: ms(50)}, 0},
		"nor do enough records":             {standing{oldest: now, linger: ms(50), enough: true}, 0},
		"nor does a flush":                  {standing{oldest: now, linger: ms(50), hurry: true}, 0},
		"a failure pauses all of them":      {standing{oldest: now, linger: ms(50), hurry: true, notUntil: now.Add(ms(200))}, ms(200)},
		"so does the pace":                  {standing{oldest: now, linger: ms(50), enough: true, pace: ms(70)}, ms(70)},
		"the latest reason counts":          {standing{oldest: now, linger: ms(50), notUntil: now.Add(ms(20)), pace: ms(30)}, ms(50)},
		"a request in flight holds them up": {standing{held: true, hurry: true, oldest: now.Add(-time.Hour)}, -1},
	} {
		at, ok := c.standing.due(now)
		if !ok && c.want >= 0 || ok && (c.want < 0 || at.Sub(now) != c.want) {
			t.Errorf("%s: due in %v, %v, want %v", name, at.Sub(now), ok, c.want)
		}
	}
}

func TestContainersGrowWithTheRoundTrip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		roundTrip time.Duration
		share     float64
		largest   int
		want      int
	}{
		{0, 1, usualRecord, 50_000},
		{20 * time.Millisecond, 1, usualRecord, 50_000},
		{50 * time.Millisecond, 1, usualRecord, 75_000},
		{200 * time.Millisecond, 1, usualRecord, 275_000},
		{time.Minute, 1, usualRecord, usualRecord},
		{20 * time.Millisecond, 0.5, usualRecord, 25_000},
		{20 * time.Millisecond, leastShare, usualRecord, 25_000},
		{20 * time.Millisecond, 1, 20_000, 20_000},
	} {
		got := containerSize(c.roundTrip, c.share, c.largest)
		if got != c.want {
			t.Errorf("a round trip of %v at %v: %d bytes, want %d", c.roundTrip, c.share, got, c.want)
		}
		if fills := float64(got) / max(c.roundTrip.Seconds(), 0.001); got < c.largest && fills < c.share*shardBytes {
			t.Errorf("a round trip of %v: one container in flight is %.0f bytes a second", c.roundTrip, fills)
		}
	}
}

// A pace never allows more than the limits of a shard and a burst.
func TestPaceKeepsToTheLimits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var p pace
		began := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
		now := began
		bytes, records := 0, 0
		for now.Sub(began) < 10*time.Second {
			n := 1 + rnd.IntN(100_000)
			if wait := p.wait(now, n, 1); wait > 0 {
				now = now.Add(wait)
				for range 20 { // the share, and with it what can be saved up, grows meanwhile
					now = now.Add(p.wait(now, n, 1))
				}
				if again := p.wait(now, n, 1); again > 0 {
					t.Fatalf("seed %d: after a wait of %v there are %v more", seed, wait, again)
				}
			}
			p.use(n, 1)
			bytes, records = bytes+n, records+1
			if rnd.IntN(50) == 0 {
				p.throttled(now, now)
			}
			now = now.Add(time.Duration(rnd.IntN(30)) * time.Millisecond)
		}
		seconds := now.Sub(began).Seconds()
		if most := shardBytes*(seconds+burst) + 100_000; float64(bytes) > most {
			t.Errorf("seed %d: %d bytes in %v s", seed, bytes, seconds)
		}
		if float64(records) > shardRecords*(seconds+burst)+1 {
			t.Errorf("seed %d: %d records in %v s", seed, records, seconds)
		}
	}
}

func TestPaceFollowsThrottling(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return now.Add(time.Duration(seconds * float64(time.Second))) }
	p.refill(now)
	for seconds, want := range map[float64]float64{0: 0.25, 1: 0.5, 2: 1, 100: 1} {
		if got := p.shareAt(at(seconds)); got != want {
			t.Errorf("a new pace has %v after %v s, want %v", got, seconds, want)
		}
	}
	p.throttled(at(4), at(4))
	p.throttled(at(3), at(5)) // sent before the cut
	if got := p.shareAt(at(4)); got != keptShare {
		t.Errorf("after a cut it has %v", got)
	}
	if slow, fast := p.shareAt(at(14))-keptShare, p.shareAt(at(64))-keptShare; slow > 0.05 || fast < 0.29 {
		t.Errorf("it grows by %v in 10 s and by %v in a minute", slow, fast)
	}
	for i := range 1000 {
		p.throttled(at(100+float64(i)/1000), at(100+float64(i)/1000))
	}
	if got := p.shareAt(at(101)); got < leastShare || got > leastShare+0.01 {
		t.Errorf("at the end it has %v", got)
	}
	if wait := p.wait(at(101), 25_000, 1); wait <= 0 || wait > 10*time.Second {
		t.Errorf("the next container waits %v", wait)
	}
}

func TestMergeKeepsTheNumbers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var a list
		var b []*Pending
		n := uint64(rnd.IntN(20))
		for i := range n {
			p := &Pending{number: i + 1, bytes: 3}
			if rnd.IntN(2) == 0 {
				a.push(p)
			} else {
				b = append(b, p)
			}
		}
		a.merge(b)
		if a.n != int(n) || a.bytes != 3*int(n) {
			t.Fatalf("seed %d: %d records, %d bytes", seed, a.n, a.bytes)
		}
		var got []uint64
		for a.n > 0 {
			got = append(got, a.pop().number)
		}
		if uint64(len(got)) != n || !slices.IsSorted(got) || a.bytes != 0 || a.first() != nil {
			t.Fatalf("seed %d: %v, %d bytes are left", seed, got, a.bytes)
		}
	}
}

func TestShardMaps(t *testing.T) {
	t.Parallel()
	key := func(s string) shard.HashKey {
		k, err := shard.ParseHashKey(s)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sh := func(id, start, end string, parents ...string) shard.Shard {
		k := shard.MaxHashKey
		if end != "" {
			k = key(end)
		}
		return shard.Shard{ID: id, Range: shard.HashRange{Start: key(start), End: k}, Parents: parents}
	}
	closed := func(s shard.Shard) shard.Shard { s.Closed = true; return s }
	a, b := sh("a", "0", "99"), sh("b", "100", "")
	b1, b2 := sh("b1", "100", "199", "b"), sh("b2", "200", "", "b")
	for name, c := range map[string]struct {
		listed []shard.Shard
		want   string // "" is an error
	}{
		"two shards":                   {[]shard.Shard{b, a}, "a b"},
		"a closed parent":              {[]shard.Shard{a, closed(b), b2, b1}, "a b1 b2"},
		"a parent that is listed open": {[]shard.Shard{a, b, b1, b2}, "a b1 b2"},
		"a shard is missing":           {[]shard.Shard{a, b2}, ""},
		"the first one is missing":     {[]shard.Shard{b}, ""},
		"the last one is missing":      {[]shard.Shard{a, b1}, ""},
		"one is there twice":           {[]shard.Shard{a, b, b}, ""},
		"all are closed":               {[]shard.Shard{closed(a), closed(b)}, ""},
		"nothing is listed":            {nil, ""},
	} {
		m, err := newShardMap(c.listed)
		got := ""
		if err == nil {
			for i, s := range m.shards {
				if i > 0 {
					got += " "
				}
				got += s.ID
				if m.find(s.Range.Start) != i || m.find(s.Range.End) != i || !m.has(s.ID) {
					t.Errorf("%s: shard %s is not found", name, s.ID)
				}
			}
		}
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	r := ranges{}
	for i := range 5000 {
		r.learn([]shard.Shard{sh(fmt.Sprint(i), "0", ""), a})
	}
	if len(r) > 1100 || r["a"] != a.Range || r["4999"].End != shard.MaxHashKey {
		t.Errorf("%d ranges are remembered", len(r))
	}
}

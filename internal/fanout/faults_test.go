package fanout

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// After a failure of a single subscription, reading continues within the documented time. No record
// is lost or repeated, and the shard is not polled.
func TestFanOutRecovers(t *testing.T) {
	const retry = 2 * time.Second // the minimum time between calls, and the first pause
	for name, test := range map[string]struct {
		fault kinesistest.Fault
		times int // negative means forever
		bound time.Duration
	}{
		"half-open after some events":     {stream(kinesistest.SubscriptionFault{Events: 3, HalfOpen: true}), 1, silenceTimeout + retry},
		"half-open from the start":        {stream(kinesistest.SubscriptionFault{HalfOpen: true}), 1, silenceTimeout + retry},
		"no first frame":                  {stream(kinesistest.SubscriptionFault{NoInitialResponse: true, HalfOpen: true}), 1, answerTimeout + retry},
		"the header comes late":           {stream(kinesistest.SubscriptionFault{HeaderDelay: time.Hour}), 1, answerTimeout + retry},
		"ends at once":                    {stream(kinesistest.SubscriptionFault{End: true}), 2, 2 * retry},
		"ends after an event":             {stream(kinesistest.SubscriptionFault{Events: 1, End: true}), 5, 5*retry + 25*time.Second},
		"cut in an event":                 {stream(kinesistest.SubscriptionFault{CutEvent: true}), 2, 2 * retry},
		"cut in a later event":            {stream(kinesistest.SubscriptionFault{Events: 2, CutEvent: true}), 1, retry},
		"an event with a wrong checksum":  {stream(kinesistest.SubscriptionFault{Corrupt: true}), 2, 2 * retry},
		"a protocol error":                {stream(kinesistest.SubscriptionFault{ProtocolError: &kinesistest.Error{Code: "Oops", Message: "oops"}}), 2, 2 * retry},
		"events of tomorrow":              {stream(kinesistest.SubscriptionFault{UnknownEvent: true}), -1, retry},
		"every event twice":               {stream(kinesistest.SubscriptionFault{Duplicate: true}), -1, retry},
		"throttled by KMS in the stream":  {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "KMSThrottlingException"}}), 2, 2 * retry},
		"internal failure in the stream":  {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "InternalFailureException"}}), 2, 2 * retry},
		"key disabled in the stream":      {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "KMSDisabledException"}}), 2, 2 * retry},
		"stale not found in the stream":   {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "ResourceNotFoundException"}}), 2, 2 * retry},
		"taken over in the stream":        {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "ResourceInUseException"}}), 2, 2 * (takeoverAfter + retry)},
		"throttled":                       {refusal("LimitExceededException"), 2, 2 * retry},
		"internal failure":                {refusal("InternalFailure"), 2, 2 * retry},
		"stale not found":                 {refusal("ResourceNotFoundException"), 2, 2 * retry},
		"in use":                          {refusal("ResourceInUseException"), 4, 4 * retry},
		"connection cut":                  {kinesistest.Fault{Cut: true}, 2, 2 * retry},
		"answer lost":                     {kinesistest.Fault{LoseAnswer: true}, 1, takeoverAfter + retry},
		"answer cut short":                {kinesistest.Fault{CutAfter: 40}, 2, 2 * retry},
		"no answer":                       {kinesistest.Fault{Delay: time.Hour}, 2, 2 * (answerTimeout + retry)},
		"junk for events":                 {kinesistest.Fault{Rewrite: func([]byte) []byte { return []byte("<html>") }}, 2, 2 * retry},
		"no end and no continuation":      {without("ContinuationSequenceNumber"), 2, 2 * retry},
		"a continuation that is none":     {with("ContinuationSequenceNumber", "soon"), 2, 2 * retry},
		"children and a continuation":     {with("ChildShards", []any{map[string]any{"ShardId": "x", "ParentShards": []string{"y"}}}), 2, 2 * retry},
		"children without a continuation": {without("ContinuationSequenceNumber", "and", "ChildShards", []any{map[string]any{"ShardId": ""}}), 2, 2 * retry},
	} {
		t.Run(name, func(t *testing.T) {
			recovers := func(t *testing.T, p *fanned) {
				p.faulty(test.times, test.fault)
				p.send()
				took := p.all(test.bound)
				p.send() // further records, in case trouble comes later
				took = max(took, p.all(test.bound))
				began := time.Now()
				p.follow(11 * time.Second)
				if took = max(took, time.Since(began)-16*time.Second); took > test.bound {
					t.Errorf("nothing came for %v, bound %v", took, test.bound)
				}
				p.send()
				took = max(took, p.all(test.bound))
				t.Logf("recovered within %v, bound %v; %d subscriptions", took, test.bound, p.subscriptions())
				if len(p.modes) > 0 {
					t.Errorf("it fell back: %v", p.modes)
				}
			}
			fanOut(t, kinesistest.Config{}, recovers)
			fanOut(t, kinesistest.Config{TLS: true}, func(t *testing.T, p *fanned) {
				recovers(t, p)
				p.asked.Lock()
				defer p.asked.Unlock()
				if p.proto != "HTTP/2.0" {
					t.Errorf("that was %s", p.proto)
				}
			})
		})
	}
}

// without returns a fault that removes a field from events. more can be "and", the name of another
// field and its new value. with returns a fault that only sets a field.
func without(name string, more ...any) kinesistest.Fault {
	return rewrite(func(m map[string]any) {
		delete(m, name)
		if len(more) == 3 {
			m[more[1].(string)] = more[2]
		}
	})
}

func with(name string, value any) kinesistest.Fault {
	return rewrite(func(m map[string]any) { m[name] = value })
}

func rewrite(change func(map[string]any)) kinesistest.Fault {
	return kinesistest.Fault{Rewrite: func(body []byte) []byte {
		var m map[string]any
		if json.Unmarshal(body, &m) != nil {
			return body
		}
		change(m)
		out, _ := json.Marshal(m)
		return out
	}}
}

// If fan-out does not work at all, the shard is polled. When fan-out works again, it is used again.
// Each change is reported once.
func TestFanOutFallsBackAndReturns(t *testing.T) {
	for name, test := range map[string]struct {
		fault kinesistest.Fault
		bound time.Duration // time from the start to the first polled record
	}{
		"clean ends without an event, for ever": {stream(kinesistest.SubscriptionFault{End: true}), 6 * time.Second},
		"half-open, for ever":                   {stream(kinesistest.SubscriptionFault{HalfOpen: true}), 3*silenceTimeout + 6*time.Second},
		"no first frame, ever":                  {stream(kinesistest.SubscriptionFault{NoInitialResponse: true, HalfOpen: true}), 3*answerTimeout + 6*time.Second},
		"no answer":                             {kinesistest.Fault{Delay: time.Hour}, 3*answerTimeout + 6*time.Second},
		"no permission":                         {refusal("AccessDeniedException"), time.Second},
		"an operation that is not known":        {refusal("UnknownOperationException"), 6 * time.Second},
		"in use, for ever":                      {refusal("ResourceInUseException"), refusedFor + 6*time.Second},
		"taken over again and again":            {stream(kinesistest.SubscriptionFault{Exception: &kinesistest.Error{Code: "ResourceInUseException"}}), 3*takeoverAfter + 6*time.Second},
		"broken events":                         {without("ContinuationSequenceNumber"), 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			fanOut(t, kinesistest.Config{}, func(t *testing.T, p *fanned) {
				p.faulty(-1, test.fault)
				p.send()
				took := p.all(test.bound)
				before := p.subscriptions()
				for range 60 { // ten minutes
					p.follow(10 * time.Second)
					p.send()
					p.all(2*probeTimeout + time.Second)
				}
				if n := p.subscriptions() - before; n < 7 || n > 12 {
					t.Errorf("%d subscriptions were tried in ten minutes, want one a minute", n)
				}
				if len(p.modes) != 1 || p.modes[0] == nil {
					t.Errorf("the changes are %v, want one to polling", p.modes)
				}
				failures := len(p.fails)
				p.faulty(0, kinesistest.Fault{})
				p.follow(fallbackFor + fallbackFor/10 + 2*probeTimeout)
				if len(p.modes) != 2 || p.modes[1] != nil {
					t.Fatalf("the changes are %v, want one back", p.modes)
				}
				polls := p.srv.Requests("GetRecords")
				for range 30 {
					p.follow(20 * time.Second)
					p.send()
					p.all(2 * time.Second)
				}
				if n := p.srv.Requests("GetRecords"); n != polls {
					t.Errorf("it polled %d times after it had returned", n-polls)
				}
				t.Logf("polling after %v, bound %v; %d failures told", took, test.bound, failures)
			})
		})
	}
}

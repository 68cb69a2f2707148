package producer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// After the first failed record the producer sends nothing, and the stored records of each key are
// the first ones that were put.
func TestStopOnFailure(t *testing.T) {
	for _, plain := range []bool{false, true} {
		o := Options{StopOnFailure: true, NoAggregation: plain, MaxRecords: 1000}
		inBubble(t, 2, o, func(t *testing.T, server *kinesistest.Server, p *Producer) {
			server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
				if c.N == 3 {
					return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException"}}
				}
				return kinesistest.Fault{Delay: 20 * time.Millisecond}
			})
			pending := map[string][]*Pending{}
			for i := range 1000 {
				key := fmt.Sprint("key", i%3)
				pending[key] = append(pending[key], put(t, p, key, fmt.Sprintf("%300d", i)))
			}
			// The buffer is full: these calls wait until records fail.
			blocked := make(chan error, 10)
			for range cap(blocked) {
				go func() {
					r := Record{PartitionKey: "key0", Data: []byte("x")}
					var err error
					for err == nil {
						_, err = p.Put(t.Context(), r)
					}
					blocked <- err
				}()
			}
			for range cap(blocked) {
				if err := <-blocked; !errors.Is(err, ErrStopped) {
					t.Errorf("a blocked Put: %v", err)
				}
			}
			if _, err := p.TryPut(Record{PartitionKey: "k"}); !errors.Is(err, ErrStopped) {
				t.Errorf("TryPut: %v", err)
			}
			flushed(t, p)
			calls := p.Counts().Requests
			refused := 0
			for key, all := range pending {
				var failed error
				for i, pending := range all {
					_, err := pending.Wait(t.Context())
					if err == nil && failed != nil {
						t.Fatalf("record %d of %s is stored after %v", i, key, failed)
					}
					if errors.Is(err, ErrRefused) {
						refused++
					} else if err != nil && !errors.Is(err, ErrStopped) {
						t.Fatal(err)
					}
					failed = err
				}
			}
			time.Sleep(time.Minute)
			c := p.Counts()
			if refused == 0 || c.Stored == 0 || c.Requests != calls ||
				c.BufferedRecords != 0 || c.Blocked != 0 {
				t.Errorf("%d were refused: %+v", refused, c)
			}
			closed(t, p)
		})
	}
}

// A record that expires stops the producer. Records in flight get their results.
func TestStopOnFailureByAge(t *testing.T) {
	o := Options{StopOnFailure: true, NoAggregation: true, MaxAge: time.Second}
	inBubble(t, 1, o, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		server.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Delay: 4 * time.Second}
		})
		first := put(t, p, "k", "1")
		time.Sleep(500 * time.Millisecond)
		second, other := put(t, p, "k", "2"), put(t, p, "l", "3")
		if _, err := second.Wait(t.Context()); !errors.Is(err, ErrExpired) {
			t.Errorf("the second: %v", err)
		}
		_, err := other.Wait(t.Context())
		if !errors.Is(err, ErrStopped) && !errors.Is(err, ErrExpired) {
			t.Errorf("another: %v", err)
		}
		if _, err := first.Wait(t.Context()); err != nil {
			t.Errorf("the one in flight: %v", err)
		}
		closed(t, p)
	})
}

// If a record fails while a request is built, no newer record of its key gets into the request.
func TestStopWhileARequestIsBuilt(t *testing.T) {
	now := time.Now()
	for name, change := range map[string]func(*core){
		"by age":  func(*core) {},
		"by size": func(c *core) { c.facts.maxRecord, c.maxAge = 5, 0 },
	} {
		for _, plain := range []bool{false, true} {
			o := options{plain: plain, stopOnFailure: true, maxAge: 5 * time.Second}
			c := newCore(o, now)
			c.put(&Pending{key: "k", data: []byte("12345"), bytes: 6}, now.Sub(c.began))
			c.put(&Pending{key: "k", data: []byte("1"), bytes: 2}, now.Add(4*time.Second).Sub(c.began))
			change(c)
			r, _ := c.next(now.Add(6 * time.Second))
			if r != nil || !c.stopped || c.counts.Failed != 1 {
				t.Errorf("%s, plain %v: %v, %+v", name, plain, r, c.counts)
			}
			c.failWaiting(ErrStopped)
			if c.open != 0 || c.counts.Failed != 2 {
				t.Errorf("%s, plain %v: %d records have no outcome", name, plain, c.open)
			}
		}
	}
}

// Counts.Codes contains each refusal under its code. The map is a copy.
func TestCodes(t *testing.T) {
	o := Options{NoAggregation: true}
	inBubble(t, 1, o, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		if c := p.Counts(); c.Codes != nil {
			t.Errorf("without a refusal: %v", c.Codes)
		}
		server.Control("PutRecords", func(c *kinesistest.Call) kinesistest.Fault {
			switch c.N {
			case 1:
				return kinesistest.Fault{Cut: true}
			case 2:
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "KMSThrottlingException"}}
			case 3:
				return kinesistest.Fault{PartialFailure: func(i int) string {
					return []string{"", "InternalFailure"}[i]
				}}
			}
			return kinesistest.Fault{}
		})
		put(t, p, "a", "1")
		put(t, p, "b", "2")
		flushed(t, p)
		c := p.Counts()
		want := map[string]uint64{"": 2, "KMSThrottlingException": 2, "InternalFailure": 1}
		if !maps.Equal(c.Codes, want) || c.Retried != 5 || c.Unknown != 3 || c.Postponed != 2 {
			t.Errorf("%+v, want the codes %v", c, want)
		}
		c.Codes[""] = 99
		if n := p.Counts().Codes[""]; n != 2 {
			t.Errorf("the map is shared: %d", n)
		}
		closed(t, p)
	})
}

// An error has the last code that the service answered with, and the last reason other than Close.
func TestErrorHasTheLastReason(t *testing.T) {
	const code = "ProvisionedThroughputExceededException"
	full := kinesistest.Fault{Err: &kinesistest.Error{Code: code, Message: "full"}}
	cut := kinesistest.Fault{Cut: true}
	for name, c := range map[string]struct {
		calls      []kinesistest.Fault
		code, text string
	}{
		"nothing":                       {nil, "", "closed (it may be in the stream)"},
		"a refusal":                     {[]kinesistest.Fault{full}, code, code + ": full"},
		"a refusal, then a broken call": {[]kinesistest.Fault{full, cut}, code, "EOF"},
		"a broken call, then a refusal": {[]kinesistest.Fault{cut, full}, code, code + ": full"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
				server.Control("PutRecords", func(call *kinesistest.Call) kinesistest.Fault {
					if call.N <= len(c.calls) {
						return c.calls[call.N-1]
					}
					return kinesistest.Fault{Delay: time.Hour}
				})
				pending := put(t, p, "k", "data")
				time.Sleep(2 * time.Second)
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := p.Close(ctx); !errors.Is(err, ErrClosed) {
					t.Errorf("Close: %v", err)
				}
				_, err := pending.Wait(t.Context())
				var failed *Error
				if !errors.As(err, &failed) || failed.Code != c.code ||
					failed.Attempts != len(c.calls)+1 || !failed.MaybeStored {
					t.Errorf("%#v", err)
				}
				text := err.Error()
				if !strings.Contains(text, c.text) || strings.Count(text, ErrClosed.Error()) != 1 {
					t.Errorf("%v, want %q", err, c.text)
				}
			})
		})
	}
}

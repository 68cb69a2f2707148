package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

func TestReadingALargeAnswer(t *testing.T) {
	want := answers.Sample(3000, 1000)
	body := string(answers.CBOR{}.Encode(want))
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		w.Header().Set("X-Amzn-Requestid", "r-1")
		write(w, 200, codec.CBORType, body) // without a content length
	})
	for _, reuse := range []bool{false, true} {
		c := newCaller(t, fakeClient(server.URL), Options{Reuse: reuse, Poison: reuse, MaxConns: 4})
		var p codec.Page
		rest, err := c.Read(t.Context(), Request{Iterator: "it"}, &p)
		if err != nil || rest == nil || p.Last {
			t.Fatal(err, rest, p.Last)
		}
		n, parts := 0, 1
		for ; ; parts++ {
			for _, r := range p.Records {
				if !bytes.Equal(r.Data, want.Records[n].Data) || r.Key != want.Records[n].Key || r.SequenceNumber != want.Records[n].SequenceNumber {
					t.Fatalf("record %d is wrong", n)
				}
				n++
			}
			if p.RequestID != "r-1" {
				t.Fatalf("request ID %q", p.RequestID)
			}
			if p.Last {
				break
			}
			kept := p.Records
			if err := rest.Next(&p); err != nil {
				t.Fatal(err)
			}
			if reuse && kept[0].Key[0] != codec.Poisoned {
				t.Fatal("the part before was not released")
			}
		}
		if n != 3000 || parts < 6 || p.Next != want.Next || c.held.Load() != 0 {
			t.Errorf("%d records in %d parts, %d held", n, parts, c.held.Load())
		}
		if err := rest.Next(&p); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		rest.Close()
		if c.held.Load() != 0 {
			t.Error("closed twice")
		}
		// At most half of the connections hold an answer in parts. Other answers are read whole.
		var held []*Rest
		for range 3 {
			if rest, err = c.Read(t.Context(), Request{Iterator: "it"}, new(codec.Page)); err != nil {
				t.Fatal(err)
			}
			if rest != nil {
				held = append(held, rest)
			}
		}
		if len(held) != 2 {
			t.Errorf("%d answers are held, want 2", len(held))
		}
		for _, rest := range held {
			rest.Close()
			rest.Close()
		}
		if err := held[0].Next(&p); !errors.Is(err, ErrClosed) || c.held.Load() != 0 {
			t.Error(err, c.held.Load())
		}
	}
}

// Small answers, answers in JSON, and answers that the SDK reads arrive whole.
func TestWhatIsReadWhole(t *testing.T) {
	large := answers.Sample(1000, 1000)
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		n := large
		if strings.HasPrefix(r.URL.Path, "/small") {
			n = answers.Sample(3, 3)
		}
		if f := r.Header.Get("Content-Type"); f == codec.JSONType {
			write(w, 200, f, string(answers.JSON{}.Encode(n)))
		} else {
			write(w, 200, f, string(answers.CBOR{}.Encode(n)))
		}
	})
	for _, c := range []struct {
		path string
		opts Options
	}{{"/small", Options{}}, {"/", Options{Format: codec.JSON}}, {"/", Options{Path: UnderSDK}}, {"/", Options{Path: PlainSDK, Format: codec.JSON}}, {"/", Options{Window: 2 << 20}}} {
		caller := newCaller(t, fakeClient(server.URL+c.path), c.opts)
		var p codec.Page
		rest, err := caller.Read(t.Context(), Request{Iterator: "it"}, &p)
		if err != nil || rest != nil || !p.Last || len(p.Records) == 0 || caller.held.Load() != 0 {
			t.Errorf("%+v: %v, rest %v, last %v, %d records", c.opts, err, rest != nil, p.Last, len(p.Records))
		}
	}
}

// If an answer breaks off, stalls or becomes invalid after its first part, the next part is an
// error. If the rest of an answer is not read in time, the answer is closed.
func TestTheRestMayFail(t *testing.T) {
	body := answers.CBOR{}.Encode(answers.Sample(2000, 1000))
	bad := bytes.Clone(body)
	bad[1_500_000] ^= 0xff
	bad = append(bad[:1_400_000], bytes.Repeat([]byte{0x1c}, len(bad)-1_400_000)...)
	for name, c := range map[string]struct {
		body  []byte
		send  int
		cut   bool
		hold  time.Duration // time before the second part is requested
		check func(error) bool
	}{
		"cut":                    {body, 700_000, true, 0, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"stalled":                {body, 700_000, false, 0, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"held":                   {body, len(body), false, time.Minute, func(err error) bool { return errors.Is(err, errHeld) }},
		"slow but within bounds": {body, len(body), false, 19 * time.Second, func(err error) bool { return err == nil }},
		"bad": {bad, len(bad), false, 0, func(err error) bool {
			var decode *smithy.DeserializationError
			var op *smithy.OperationError
			return errors.As(err, &decode) && errors.As(err, &op)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newPipes()
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", codec.CBORType)
					w.Header().Set("Content-Length", fmt.Sprint(len(c.body)))
					_, _ = w.Write(c.body[:c.send])
					if c.cut {
						panic(http.ErrAbortHandler)
					}
					if c.send < len(c.body) {
						<-r.Context().Done()
					}
				})}
				served := make(chan struct{})
				go func() {
					defer close(served)
					_ = server.Serve(network)
				}()
				transport := &http.Transport{DialContext: network.dial}
				client := fakeClient("http://pipes", func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
				caller := newCaller(t, client, Options{})
				var p codec.Page
				rest, err := caller.Read(t.Context(), Request{Iterator: "it"}, &p)
				if err != nil || rest == nil {
					t.Fatal(err)
				}
				for err == nil && !p.Last {
					time.Sleep(c.hold)
					err = rest.Next(&p)
				}
				if !c.check(err) || caller.held.Load() != 0 {
					t.Errorf("%v, %d held", err, caller.held.Load())
				}
				if name == "bad" {
					// CBOR had worked at this endpoint, so one failure does not select JSON. The
					// next failure would.
					ep, _ := caller.endpoints.Load(endpointKey{})
					if state := ep.(*endpoint).format.load(); state != cborUntried {
						t.Errorf("the state is %d", state)
					}
				}
				caller.Close()
				_ = server.Close()
				<-served
			})
		})
	}
}

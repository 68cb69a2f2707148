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
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"
)

// readParts reads an answer in parts and puts them together again.
func readParts(body io.Reader, length int64, window int, reuse bool) (all *Page, parts int, err error) {
	pr := &partsReader{body: body, left: length, window: window, piece: window/3 + 1, rd: &reading{reuse: reuse, most: mostBody}}
	all = &Page{Behind: -1}
	var p Page
	for {
		p.Release()
		if err := pr.next(&p); err != nil {
			return all, parts, err
		}
		parts++
		for _, r := range p.Records {
			r.Key, r.SequenceNumber = strings.Clone(r.Key), strings.Clone(r.SequenceNumber)
			if r.Data != nil {
				r.Data = append(make([]byte, 0, len(r.Data)), r.Data...)
			}
			all.Records = append(all.Records, r)
		}
		all.Bytes += p.Bytes
		if misplaced, marked := noted(p.Records); p.Misplaced != misplaced || p.Marked != marked {
			return all, parts, fmt.Errorf("misplaced %d, marked %v, want %d, %v", p.Misplaced, p.Marked, misplaced, marked)
		}
		all.Misplaced, all.Marked = noted(all.Records)
		if p.Last {
			all.Next, all.Behind, all.Children, all.Last = p.Next, p.Behind, p.Children, true
			return all, parts, nil
		}
		if len(p.Records) == 0 || p.Next != "" || p.Children != nil {
			return all, parts, fmt.Errorf("a part that is not the last has %d records, next %q", len(p.Records), p.Next)
		}
	}
}

func TestPartsMakeTheWhole(t *testing.T) {
	styles := []cborStyle{{}, {open: true}, {open: true, chunks: true, extra: true}, {last: true, extra: true}, {textData: true}, {nullKey: true, encryption: true, last: true, open: true}}
	for i, st := range styles {
		for name, want := range pages() {
			body := st.encode(want)
			for _, window := range []int{1, 7, 100, 1000, 4096, 1 << 20} {
				for _, length := range []int64{int64(len(body)), -1} {
					if window < 100 && len(body) > 10_000 {
						continue // it takes long and shows nothing more
					}
					got, parts, err := readParts(bytes.NewReader(body), length, window, window%2 == 0)
					if err != nil {
						t.Fatalf("style %d, %s, window %d, length %d: %v", i, name, window, length, err)
					}
					if d := differ(got, want, equalTime); d != "" {
						t.Errorf("style %d, %s, window %d, length %d: %s", i, name, window, length, d)
					}
					if window >= len(body) && parts != 1 {
						t.Errorf("style %d, %s: %d parts of %d bytes in a window of %d", i, name, parts, len(body), window)
					}
				}
			}
		}
	}
}

func TestPartsFromASlowReader(t *testing.T) {
	want := pages()["odd records"]
	body := (&cborStyle{}).encode(want)
	for name, r := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(bytes.NewReader(body)), "halves": iotest.HalfReader(bytes.NewReader(body)), "EOF with data": iotest.DataErrReader(bytes.NewReader(body)),
	} {
		got, _, err := readParts(r, -1, 4096, true)
		if err != nil {
			t.Fatal(name, err)
		}
		if d := differ(got, want, equalTime); d != "" {
			t.Error(name, d)
		}
	}
}

func TestBrokenPartsAreErrors(t *testing.T) {
	want := samplePage(20, 100)
	whole := string((&cborStyle{}).encode(want))
	list := func(items string) string { return "\xa1\x67Records" + items }
	for name, c := range map[string]struct{ body, what string }{
		"records twice":          {"\xa2\x67Records\x80\x67Records\x80", "twice"},
		"more behind":            {whole + "\x00", "more after"},
		"much more behind":       {whole + strings.Repeat("\x00", 10_000), "more after"},
		"a list without an end":  {list("\x9f"), shortAnswer},
		"too long a list":        {list("\x9b\x00\x00\x00\x01\x00\x00\x00\x00"), "longer than any"},
		"too many records":       {list("\x9a\x00\x01\x00\x01\x00"), "too many"},
		"a record that is text":  {list("\x81\x61a"), "a map"},
		"a break for a record":   {list("\x81\xff"), "break"},
		"no map":                 {"\x80", "a map"},
		"records that are a map": {"\xa1\x67Records\xa0", "an array"},
		"a bad value":            {"\xa1\x72MillisBehindLatest\x61a", "a number"},
		"a bad first byte":       {"\x1c", "a map"},
		"nothing":                {"", shortAnswer},
	} {
		for _, length := range []int64{int64(len(c.body)), -1} {
			_, _, err := readParts(strings.NewReader(c.body), length, 64, false)
			if malformed := (*MalformedError)(nil); !errors.As(err, &malformed) || !strings.Contains(err.Error(), c.what) {
				t.Errorf("%s, length %d: %v, want one about %q", name, length, err, c.what)
			}
		}
	}
	for n := range len(whole) {
		got, _, err := readParts(strings.NewReader(whole[:n]), -1, 500, false)
		if malformed := (*MalformedError)(nil); !errors.As(err, &malformed) || !malformed.short {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		for i, r := range got.Records { // what was delivered before is good
			if !bytes.Equal(r.Data, want.Records[i].Data) {
				t.Fatalf("cut after %d bytes: record %d is wrong", n, i)
			}
		}
		if _, _, err = readParts(strings.NewReader(whole[:n]), int64(len(whole)), 500, false); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("broken off after %d bytes: %v", n, err)
		}
	}
	broken := errors.New("reset")
	if _, _, err := readParts(io.MultiReader(strings.NewReader(whole[:300]), iotest.ErrReader(broken)), -1, 200, true); !errors.Is(err, broken) {
		t.Error(err)
	}
	small := &partsReader{body: strings.NewReader(whole), left: -1, window: 1024, rd: &reading{most: 1024}}
	var p Page
	err := small.next(&p)
	for err == nil && !p.Last {
		err = small.next(&p)
	}
	if !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// A window is all the memory that an answer of any size takes, but for a record that is larger.
func TestAWindowIsEnough(t *testing.T) {
	body := (&cborStyle{}).encode(samplePage(10_000, 1024))
	pr := &partsReader{body: bytes.NewReader(body), left: int64(len(body)), window: defaultWindow, rd: &reading{reuse: true, most: mostBody}}
	var p Page
	parts, most := 0, 0
	for !p.Last {
		p.Release()
		if err := pr.next(&p); err != nil {
			t.Fatal(err)
		}
		parts++
		most = max(most, len(p.memory.body)+72*cap(p.Records)+cap(pr.carry))
	}
	if t.Logf("an answer of %d bytes took %d parts and %d bytes of memory", len(body), parts, most); most > 2*defaultWindow || parts < 20 {
		t.Error("too much")
	}
}

// FuzzParts: an answer read in parts is the same as read at once, or an error as well.
func FuzzParts(f *testing.F) {
	for _, p := range smallPages() {
		for i, st := range []cborStyle{{}, {open: true, chunks: true}, {extra: true, last: true}, {textData: true, float: true}} {
			f.Add(st.encode(p), uint16(10*i+3), i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, window uint16, known bool) {
		var want Page
		wantErr := Decode(CBOR, bytes.Clone(body), &want)
		length := int64(-1)
		if known {
			length = int64(len(body))
		}
		got, _, err := readParts(bytes.NewReader(body), length, int(window)+1, window%2 == 1)
		if err != nil && wantErr == nil && strings.Contains(err.Error(), "twice") {
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("in parts %v, at once %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if d := differ(got, &want, equalTime); d != "" {
			t.Fatal(d)
		}
	})
}

func TestReadingALargeAnswer(t *testing.T) {
	want := samplePage(3000, 1000)
	body := string((&cborStyle{}).encode(want))
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		w.Header().Set("X-Amzn-Requestid", "r-1")
		write(w, 200, cborType, body) // of unknown length
	})
	for _, reuse := range []bool{false, true} {
		c := newCaller(t, fakeClient(server.URL), Options{Reuse: reuse, Poison: reuse, MaxConns: 4})
		var p Page
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
			if reuse && kept[0].Key[0] != poisoned {
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
		// No more than half of the connections are held; others get all at once.
		var held []*Rest
		for range 3 {
			if rest, err = c.Read(t.Context(), Request{Iterator: "it"}, new(Page)); err != nil {
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

// What is small, in JSON, or read through the SDK comes whole.
func TestWhatIsReadWhole(t *testing.T) {
	large := samplePage(1000, 1000)
	server := newFake(t, func(w http.ResponseWriter, r seen) {
		n := large
		if strings.HasPrefix(r.URL.Path, "/small") {
			n = samplePage(3, 3)
		}
		if f := r.Header.Get("Content-Type"); f == jsonType {
			write(w, 200, f, string((&jsonStyle{}).encode(n)))
		} else {
			write(w, 200, f, string((&cborStyle{}).encode(n)))
		}
	})
	for _, c := range []struct {
		path string
		opts Options
	}{{"/small", Options{}}, {"/", Options{Format: JSON}}, {"/", Options{Path: UnderSDK}}, {"/", Options{Path: PlainSDK, Format: JSON}}, {"/", Options{Window: 2 << 20}}} {
		caller := newCaller(t, fakeClient(server.URL+c.path), c.opts)
		var p Page
		rest, err := caller.Read(t.Context(), Request{Iterator: "it"}, &p)
		if err != nil || rest != nil || !p.Last || len(p.Records) == 0 || caller.held.Load() != 0 {
			t.Errorf("%+v: %v, rest %v, last %v, %d records", c.opts, err, rest != nil, p.Last, len(p.Records))
		}
	}
}

// An answer that breaks, stalls or turns bad after its first part is an error of the next one; an
// answer that nobody reads on is given up.
func TestTheRestMayFail(t *testing.T) {
	body := (&cborStyle{}).encode(samplePage(2000, 1000))
	bad := bytes.Clone(body)
	bad[1_500_000] ^= 0xff
	bad = append(bad[:1_400_000], bytes.Repeat([]byte{0x1c}, len(bad)-1_400_000)...)
	for name, c := range map[string]struct {
		body  []byte
		send  int
		cut   bool
		hold  time.Duration // before the second part is asked for
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
					w.Header().Set("Content-Type", cborType)
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
				var p Page
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
					// The endpoint had proven itself. Another failure, and JSON is asked for.
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

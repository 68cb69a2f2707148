package s3payload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/payload"
)

// client returns a client of a server. It makes each call once.
func client(bucket *fakes3.Server) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://s3.test"), UsePathStyle: true, HTTPClient: bucket, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	})
}

func codec(t testing.TB, bucket *fakes3.Server, o Options) *Codec {
	t.Helper()
	c, err := New(client(bucket), "b", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encoded(t testing.TB, c payload.Codec, data []byte) []byte {
	t.Helper()
	before := bytes.Clone(data)
	p, err := c.Encode(context.Background(), data)
	if err != nil || !bytes.Equal(data, before) {
		t.Fatalf("%.20q becomes %.80q, %v", before, data, err)
	}
	return p
}

const kib = 1 << 10

// order returns a JSON object with n bytes.
func order(n int) []byte {
	b := []byte(`{"kind":"order","number":7,"text":"`)
	return append(append(b, bytes.Repeat([]byte("x"), n-len(b)-2)...), `"}`...)
}

// Decoding returns any data. Large data go to S3, and data that look like a claim check.
func TestCodecReturnsTheData(t *testing.T) {
	t.Parallel()
	for _, lifion := range []string{"", "orders"} {
		bucket := fakes3.New()
		c := codec(t, bucket, Options{Threshold: kib, Lifion: lifion})
		claim := encoded(t, c, order(2*kib))
		for _, d := range []struct {
			name   string
			data   []byte
			stored bool
		}{
			{"empty", nil, false},
			{"short", order(100), false},
			{"at the threshold", order(kib), false},
			{"above the threshold", order(kib + 1), true},
			{"binary", bytes.Repeat([]byte{0, 1, 2, 3, 0xff}, kib), true},
			{"a claim check", claim, true},
			{"a claim check of lifion", []byte(`{"@S3Item":{"bucket":"b","key":"orders-1.json"}}`), lifion != ""},
			{"the mark", []byte(ownBegin), true},
			{"a text about lifion", []byte(`{"@S3Item":7}`), false},
		} {
			puts := bucket.Calls("PUT")
			p := encoded(t, c, d.data)
			got, marked, err := c.Decode(t.Context(), p)
			if !d.stored {
				got = p
			}
			if err != nil || marked != d.stored || !bytes.Equal(got, d.data) || bucket.Calls("PUT")-puts != map[bool]int{true: 1}[d.stored] {
				t.Errorf("%s, lifion %q: %.80q becomes %.80q, %v, %v", d.name, lifion, d.data, got, marked, err)
			}
			if len(p) > kib {
				t.Errorf("%s, lifion %q: the record has %d bytes", d.name, lifion, len(p))
			}
		}
		for _, key := range bucket.Keys() {
			if lifion == "" && !strings.HasPrefix(key, "payloads/") || lifion != "" && !(strings.HasPrefix(key, "orders-") && strings.HasSuffix(key, ".json")) {
				t.Errorf("lifion %q: an object has the key %s", lifion, key)
			}
		}
	}
}

// A consumer with the option Lifion reads claim checks of both forms, and one without it delivers
// those of lifion-kinesis as they are.
func TestBothFormsAreRead(t *testing.T) {
	t.Parallel()
	bucket := fakes3.New()
	own, both := codec(t, bucket, Options{Threshold: kib}), codec(t, bucket, Options{Threshold: kib, Lifion: "orders"})
	data := order(2 * kib)
	for _, p := range [][]byte{encoded(t, own, data), encoded(t, both, data)} {
		if got, _, err := both.Decode(t.Context(), p); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %.20q, %v", p, got, err)
		}
	}
	if _, marked, err := own.Decode(t.Context(), encoded(t, both, data)); marked || err != nil {
		t.Errorf("marked: %v, %v", marked, err)
	}
}

// The form of claim checks is fixed, because other versions and other programs read them.
func TestTheFormOfClaimChecks(t *testing.T) {
	t.Parallel()
	bucket := fakes3.New()
	data := order(2 * kib)
	fields := []string{"number", "none", "kind"}
	var own struct {
		Weir struct {
			V                   int
			Bucket, Key, SHA256 string
			Bytes               int
		} `json:"weir_s3"`
		Kind   string
		Number int
	}
	p := encoded(t, codec(t, bucket, Options{Threshold: kib, Fields: fields}), data)
	if err := json.Unmarshal(p, &own); err != nil || own.Weir.V != 1 || own.Weir.Bucket != "b" || own.Weir.Bytes != len(data) ||
		len(own.Weir.SHA256) != 44 || own.Kind != "order" || own.Number != 7 || !bytes.Equal(bucket.Get(own.Weir.Key), data) {
		t.Errorf("%s: %+v, %v", p, own, err)
	}
	var lifion struct {
		Item   struct{ Bucket, Key, ETag string } `json:"@S3Item"`
		Kind   string
		Number int
	}
	p = encoded(t, codec(t, bucket, Options{Threshold: kib, Fields: fields, Lifion: "orders"}), data)
	if err := json.Unmarshal(p, &lifion); err != nil || lifion.Item.Bucket != "b" || len(lifion.Item.ETag) != 32 || lifion.Kind != "order" ||
		!bytes.Equal(bucket.Get(lifion.Item.Key), data) || !bytes.HasPrefix(p, []byte(`{"@S3Item":{"bucket":"b","eTag":"`)) {
		t.Errorf("%s: %+v, %v", p, lifion, err)
	}
	for name, data := range map[string][]byte{"no JSON": bytes.Repeat([]byte("text "), kib), "an array": append(append([]byte("["), bytes.Repeat([]byte("1,"), kib)...), "1]"...)} {
		c := codec(t, bucket, Options{Threshold: kib, Fields: fields})
		p := encoded(t, c, data)
		if got, _, err := c.Decode(t.Context(), p); err != nil || !bytes.Equal(got, data) || bytes.Contains(p, []byte("kind")) {
			t.Errorf("%s: %s, %v", name, p, err)
		}
	}
	long := []byte(fmt.Sprintf(`{"kind":%q}`, strings.Repeat("x", kib)))
	if _, err := codec(t, bucket, Options{Threshold: kib, Fields: fields}).Encode(t.Context(), long); err == nil || !strings.Contains(err.Error(), "fewer Options.Fields") {
		t.Errorf("fields that are too large: %v", err)
	}
}

func TestDecodeReportsTheProblem(t *testing.T) {
	t.Parallel()
	data := order(2 * kib)
	for name, d := range map[string]struct {
		lifion bool
		claim  func(claim string) string // by default unchanged
		change func(bucket *fakes3.Server, key string)
		most   int
		want   error
		text   string
	}{
		"a missing object":           {change: func(b *fakes3.Server, key string) { b.Delete(key) }, want: ErrMissing, text: "payloads/"},
		"a missing object of lifion": {lifion: true, change: func(b *fakes3.Server, key string) { b.Delete(key) }, want: ErrMissing},
		"another object":             {change: func(b *fakes3.Server, key string) { b.Put(key, bytes.ToUpper(data)) }, want: payload.ErrDamaged, text: "not the one that the producer wrote"},
		"another object of lifion":   {lifion: true, change: func(b *fakes3.Server, key string) { b.Put(key, bytes.ToUpper(data)) }, want: payload.ErrDamaged, text: "ETag"},
		"a shorter object":           {change: func(b *fakes3.Server, key string) { b.Put(key, data[:100]) }, want: payload.ErrDamaged, text: "has 100 bytes, the producer wrote 2048"},
		"too large":                  {most: 2*kib - 1, want: payload.ErrTooLarge, text: "Options.MaxBytes"},
		"too large, of lifion":       {lifion: true, most: 2*kib - 1, want: payload.ErrTooLarge},
		"another bucket":             {claim: replace(`"bucket":"b"`, `"bucket":"other"`), want: ErrElsewhere, text: `bucket "other"`},
		"another bucket of lifion":   {lifion: true, claim: replace(`"bucket":"b"`, `"bucket":"other"`), want: ErrElsewhere},
		"another prefix":             {claim: replace(`payloads/`, `secrets/`), want: ErrElsewhere, text: `begin with "payloads/"`},
		"another prefix of lifion":   {lifion: true, claim: replace(`orders-`, `secrets-`), want: ErrElsewhere},
		"denied":                     {change: fault(fakes3.Deny), text: "AccessDenied"},
		"no bucket":                  {change: fault(fakes3.NoBucket), text: "NoSuchBucket"},
		"an outage":                  {change: fault(fakes3.Refuse), text: "SlowDown"},
		"a broken connection":        {change: fault(fakes3.Cut), want: fakes3.ErrCut},
		"a newer form":               {claim: replace(`"v":1`, `"v":2`), want: payload.ErrDamaged, text: "form 2"},
		"no form":                    {claim: replace(`"v":1,`, ``), want: payload.ErrDamaged},
		"no hash":                    {claim: replace(`,"sha256":`, `,"x":`), want: payload.ErrDamaged},
		"cut off":                    {claim: func(c string) string { return c[:len(c)-1] }, want: payload.ErrDamaged},
		"only the mark":              {claim: func(string) string { return ownBegin }, want: payload.ErrDamaged},
		"a negative size":            {claim: replace(`"bytes":`, `"bytes":-`), want: payload.ErrDamaged},
	} {
		bucket := fakes3.New()
		o := Options{Threshold: kib, MaxBytes: 0}
		if d.lifion {
			o.Lifion = "orders"
		}
		claim := string(encoded(t, codec(t, bucket, o), data))
		if d.claim != nil {
			claim = d.claim(claim)
		}
		if d.change != nil {
			d.change(bucket, bucket.Keys()[0])
		}
		o.MaxBytes = d.most
		got, marked, err := codec(t, bucket, o).Decode(t.Context(), []byte(claim))
		if err == nil || got != nil || !marked || d.want != nil && !errors.Is(err, d.want) || !strings.Contains(err.Error(), d.text) {
			t.Errorf("%s: %.20q, %v, %v; want %v and %q", name, got, marked, err, d.want, d.text)
		}
		if d.want == nil && errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v, and the object is not missing", name, err)
		}
	}
}

func replace(old, new string) func(string) string {
	return func(claim string) string { return strings.Replace(claim, old, new, 1) }
}

func fault(f fakes3.Fault) func(*fakes3.Server, string) {
	return func(b *fakes3.Server, _ string) { b.Control(func(fakes3.Call) fakes3.Fault { return f }) }
}

// A failed upload is an error of Encode, and no claim check is written.
func TestEncodeReportsTheProblem(t *testing.T) {
	t.Parallel()
	for f, want := range map[fakes3.Fault]string{fakes3.Deny: "AccessDenied", fakes3.NoBucket: "NoSuchBucket", fakes3.Lose: "the connection ended"} {
		bucket := fakes3.New()
		fault(f)(bucket, "")
		p, err := codec(t, bucket, Options{Threshold: kib}).Encode(t.Context(), order(2*kib))
		if p != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `writing "payloads/`) {
			t.Errorf("%s: %.80q, %v", want, p, err)
		}
	}
	if p, err := codec(t, fakes3.New(), Options{Threshold: kib, MaxBytes: 2 * kib}).Encode(t.Context(), order(2*kib+1)); p != nil || !errors.Is(err, payload.ErrTooLarge) {
		t.Errorf("too large: %.80q, %v", p, err)
	}
}

// A call ends after Options.Timeout, or with the caller's context.
func TestSlowCallsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := fakes3.New()
		c := codec(t, bucket, Options{Threshold: kib, Timeout: 5 * time.Second})
		claim := encoded(t, c, order(2*kib))
		bucket.Control(func(call fakes3.Call) fakes3.Fault {
			<-call.Context.Done()
			return fakes3.Cut
		})
		ended := errors.New("the caller has no time")
		for name, call := range map[string]func(context.Context) error{
			"upload": func(ctx context.Context) error {
				_, err := c.Encode(ctx, order(2*kib))
				return err
			},
			"download": func(ctx context.Context) error {
				_, _, err := c.Decode(ctx, claim)
				return err
			},
		} {
			began := time.Now()
			if err := call(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than 5s (Options.Timeout)") || time.Since(began) != 5*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, ended)
			if err := call(ctx); !errors.Is(err, ended) {
				t.Errorf("%s: %v, want the cause of the caller's end", name, err)
			}
			cancel()
		}
	})
}

func TestNewNamesTheWrongOption(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"Options.Prefix is":               {Prefix: "/x"},
		"Options.Threshold is 10":         {Threshold: 10},
		"Options.Threshold is -1":         {Threshold: -1},
		"Options.MaxBytes is 1024":        {MaxBytes: 1024},
		"Options.MaxBytes is 1073741825":  {MaxBytes: 1<<30 + 1},
		"Options.Timeout is 1ms":          {Timeout: time.Millisecond},
		`Options.Fields has "weir_s3"`:    {Fields: []string{"weir_s3"}},
		`Options.Fields has "@S3Item"`:    {Fields: []string{"@S3Item"}},
		`Options.Fields has "kind" twice`: {Fields: []string{"kind", "x", "kind"}},
	} {
		if _, err := New(client(fakes3.New()), "b", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := New(nil, "", Options{}); err == nil || !strings.Contains(err.Error(), "client is nil") || !strings.Contains(err.Error(), "bucket is required") {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	bucket := fakes3.New()
	c := codec(f, bucket, Options{Threshold: kib, Lifion: "orders"})
	f.Add(encoded(f, c, order(2*kib)))
	f.Add(encoded(f, codec(f, bucket, Options{Threshold: kib}), order(2*kib)))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, marked, err := c.Decode(t.Context(), data)
		if marked != c.marked(data) || !marked && (got != nil || err != nil) || err != nil && got != nil {
			t.Errorf("%.20q, %v, %v", got, marked, err)
		}
		if got, err := payload.Decode(t.Context(), encoded(t, c, data), c); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%.80q becomes %.80q, %v", data, got, err)
		}
	})
}

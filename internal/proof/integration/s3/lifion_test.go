package s3_test

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/payload/s3payload"
)

// lifion is a process that encodes and decodes records with the modules of lifion-kinesis.
type lifion struct {
	in  io.Writer
	out *bufio.Scanner
}

// startLifion starts the process. Call stop to end it.
func startLifion(t *testing.T, endpoint, bucket string) (l *lifion, stop func()) {
	t.Helper()
	cmd := servers.LifionScript(t, "lifion.js", endpoint, bucket, "orders")
	cmd.Env = append(cmd.Env, "AWS_REGION="+servers.Region, "AWS_ACCESS_KEY_ID="+servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+servers.SecretAccessKey,
		"AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(out)
	s.Buffer(nil, 16<<20)
	return &lifion{in, s}, func() {
		_ = in.Close() // ends the process
		if err := cmd.Wait(); err != nil {
			t.Errorf("lifion: %v", err)
		}
	}
}

// request is a line of the input of lifion.js.
type request struct {
	Compression string `json:"compression,omitempty"`
	Encode      any    `json:"encode,omitempty"`
	Decode      []byte `json:"decode,omitempty"`
}

func (l *lifion) do(t *testing.T, r request, to any) {
	t.Helper()
	line, err := json.Marshal(r)
	if err == nil {
		_, err = l.in.Write(append(line, '\n'))
	}
	if err != nil || !l.out.Scan() {
		t.Fatalf("%v, %v", err, l.out.Err())
	}
	if err := json.Unmarshal(l.out.Bytes(), to); err != nil {
		t.Fatalf("%.200s: %v", l.out.Text(), err)
	}
}

func (l *lifion) encode(t *testing.T, compression string, data any) []byte {
	t.Helper()
	var answer struct{ Payload []byte }
	l.do(t, request{Compression: compression, Encode: data}, &answer)
	return answer.Payload
}

// decode returns the record that lifion's users get.
func (l *lifion) decode(t *testing.T, compression string, payload []byte) map[string]any {
	t.Helper()
	var answer struct{ Record map[string]any }
	l.do(t, request{Compression: compression, Decode: payload}, &answer)
	return answer.Record
}

// lifion-kinesis 1.3.3 and weir read each other's claim checks.
func TestClaimChecksOfLifion(t *testing.T) {
	d := servers.S3(t)
	l, stop := startLifion(t, "http://"+d.Addr, servers.Bucket)
	defer stop()
	c, err := s3payload.New(servers.S3Client(d.Addr), servers.Bucket, s3payload.Options{Threshold: 2 << 10, Fields: []string{"kind"}, Lifion: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]any{
		"a small object": map[string]any{"kind": "order", "text": "ä"},
		"a large object": map[string]any{"kind": "order", "text": strings.Repeat("ä", 4000)},
		"a large text":   strings.Repeat("€ ", 4000),
		"a large array":  []any{strings.Repeat("x", 4000), 7.0},
	} {
		// From lifion to weir.
		p := l.encode(t, "", data)
		got, err := payload.Decode(t.Context(), p, c)
		if err != nil {
			t.Fatalf("%s: %.200s: %v", name, p, err)
		}
		want, ok := data.(string)
		if !ok {
			text, err := json.Marshal(data)
			if err != nil {
				t.Fatal(err)
			}
			want = string(text)
		}
		if string(got) != want {
			t.Errorf("%s: weir reads %.80s, want %.80s", name, got, want)
		}

		// From weir to lifion.
		if p, err = c.Encode(t.Context(), []byte(want)); err != nil {
			t.Fatal(err)
		}
		r := l.decode(t, "", p)
		if !reflect.DeepEqual(r["data"], data) {
			t.Errorf("%s: lifion reads %.80v, want %.80v", name, r["data"], data)
		}
		if strings.HasPrefix(name, "a large") != strings.Contains(string(p), "@S3Item") {
			t.Errorf("%s becomes %.80s", name, p)
		}
		if kind := r["kind"]; name == "a large object" && kind != "order" {
			t.Errorf("%s: lifion reads the kind %v", name, kind)
		}
	}
}

// Data that are larger than a record go through S3 with weir's claim checks.
func TestClaimChecksOnARealServer(t *testing.T) {
	d := servers.S3(t)
	c, err := s3payload.New(servers.S3Client(d.Addr), servers.Bucket, s3payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(strings.Repeat("0123456789abcdef", 1<<20)) // 16 MiB
	p, err := c.Encode(t.Context(), data)
	if err != nil || len(p) > 300 {
		t.Fatalf("%d bytes, %v", len(p), err)
	}
	if got, err := payload.Decode(t.Context(), p, c); err != nil || string(got) != string(data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// weir decompresses what lifion-kinesis 1.3.3 compresses with LZ-UTF8, of any length and alphabet,
// and also claim checks. lifion-kinesis reads text that weir does not compress.
func TestLZUTF8OfLifion(t *testing.T) {
	d := servers.S3(t)
	l, stop := startLifion(t, "http://"+d.Addr, servers.Bucket)
	defer stop()
	large, err := s3payload.New(servers.S3Client(d.Addr), servers.Bucket, s3payload.Options{Threshold: 2 << 10, Lifion: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	c := payload.Chain(large, payload.LZUTF8{})
	random := rand.New(rand.NewPCG(1, 2))
	shorter := 0
	for i := range 100 {
		// Few words, so that they are repeated at many distances.
		words := make([]string, 2+random.IntN(200))
		for j := range words {
			for range 1 + random.IntN(12) {
				words[j] += string([]rune("abcdeäöü€あ😀\n\"{}")[random.IntN(15)])
			}
		}
		var text strings.Builder
		for range random.IntN(600) {
			text.WriteString(words[random.IntN(len(words))])
		}
		want := "x" + text.String()
		p := l.encode(t, "LZ-UTF8", want)
		got, err := payload.Decode(t.Context(), p, c)
		if err != nil || string(got) != want {
			t.Fatalf("text %d: %.80q, %v, want %.80q", i, got, err, want)
		}
		if len(p) < len(want) {
			shorter++
		}
		if p, err = c.Encode(t.Context(), []byte(want)); err != nil {
			t.Fatal(err)
		}
		if r := l.decode(t, "LZ-UTF8", p); r["data"] != want {
			t.Fatalf("text %d: lifion reads %.80v, want %.80q", i, r["data"], want)
		}
	}
	if shorter < 60 {
		t.Errorf("only %d of 100 texts were compressed", shorter)
	}
}

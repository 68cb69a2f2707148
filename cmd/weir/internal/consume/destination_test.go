package consume

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/sink/s3sink"
)

func TestRecordsGoIntoAFile(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte(`{"n": 1}`))
	server.Put("s", "k", []byte("not JSON"))
	dir := t.TempDir()
	path, store := filepath.Join(dir, "records.ndjson"), "--store=sqlite:"+filepath.Join(dir, "leases.db")
	if err := os.WriteFile(path, []byte("{}\n{cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := func() []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(text), "\n")
	}
	c := clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--to=file:"+path)
	clitest.Eventually(t, "both records", func() bool { return len(lines()) == 5 })
	server.Put("s", "k", []byte("3"))
	clitest.Eventually(t, "one more", func() bool { return len(lines()) == 6 })
	clitest.Stop(t, c)
	if got := lines(); !slices.Equal(got, []string{"{}", "{cut", `{"n": 1}`, `{"data_base64":"bm90IEpTT04="}`, "3", ""}) {
		t.Errorf("%q", got)
	}
	if c.Out.String() != "" {
		t.Errorf("standard output has %q", c.Out)
	}
	// The new worker does not append records again that are in the file already.
	server.Put("s", "k", []byte("4"))
	c = clitest.Start(t, "", "consume", endpoint, store, "--stream=s", "--app=a", "--to=file:"+path, "-o=json")
	clitest.Eventually(t, "the fourth", func() bool { return len(lines()) == 7 })
	clitest.Stop(t, c)
	if got := lines()[5]; !strings.Contains(got, `"data":"4"`) || !strings.Contains(got, `"shard":"shardId-000000000000"`) {
		t.Errorf("%s", got)
	}
}

// If a file can no longer be written, Handle returns an error, so the batch is not lost.
func TestAFileThatFailsKeepsTheBatch(t *testing.T) {
	f, err := openAppending(filepath.Join(t.TempDir(), "x"), s3sink.Payloads)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.file.Close(); err != nil {
		t.Fatal(err)
	}
	b := &weir.Batch{Records: []weir.Record{{Data: []byte("1")}}}
	if err := f.Handle(t.Context(), b); err == nil || !strings.Contains(err.Error(), "x cannot be written") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(weir.ErrStopping)
	if err := f.Handle(ctx, b); err == nil || !strings.Contains(err.Error(), weir.ErrStopping.Error()) {
		t.Errorf("%v", err)
	}
}

func TestRecordsGoIntoABucket(t *testing.T) {
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	text, lines := clitest.Numbered(20)
	clitest.MustRun(t, text, "put", endpoint, "--stream=s", "--key=key")
	bucket := fakes3.New()
	web := httptest.NewServer(bucket)
	defer web.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", web.URL)
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	consume := []string{"consume", endpoint, store, "--stream=s", "--app=a", "--to=s3://bucket/raw", "--object-age=1s", "--object-size=30"}
	objects := func() []string {
		return slices.DeleteFunc(bucket.Keys(), func(k string) bool { return strings.Contains(k, "_weir/") })
	}
	content := func() (all string) {
		for _, key := range objects() {
			z, err := gzip.NewReader(bytes.NewReader(bucket.Get(key)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		return all
	}
	c := clitest.Start(t, "", consume...)
	clitest.Eventually(t, "all records", func() bool { return strings.Count(content(), "\n") == len(lines) })
	clitest.Stop(t, c)
	want := ""
	for _, l := range lines {
		line, err := s3sink.Payloads.Append(nil, weir.Record{Data: []byte(l)})
		if err != nil {
			t.Fatal(err)
		}
		want += string(line)
	}
	if got := content(); got != want {
		t.Errorf("%s", got)
	}
	for _, key := range objects() {
		if !strings.HasPrefix(key, "raw/s/"+time.Now().UTC().Format("dt=2006-01-")) {
			t.Errorf("an object is %s", key)
		}
	}
	if n := len(objects()); n < 3 {
		t.Errorf("%d objects", n)
	}

	t.Run("that overwrites what it should not", func(t *testing.T) {
		bucket.IgnoreConditions = true
		defer func() { bucket.IgnoreConditions = false }()
		c := clitest.Start(t, "", consume...)
		code, said := c.Wait(t), c.Err.String()
		if code != cli.ExitFailed || !strings.Contains(said, "bucket bucket: ") || !strings.Contains(said, "If-None-Match") {
			t.Errorf("%d: %s", code, said)
		}
	})
	for name, row := range map[string]struct {
		fault fakes3.Fault
		says  string
	}{
		"that may not be written":   {fakes3.Deny, "no permission for S3 PutObject"},
		"that is not there":         {fakes3.NoBucket, "there is no such bucket (NoSuchBucket): check --to"},
		"that is in another region": {fakes3.Elsewhere, "the bucket is not in the region of --region or AWS_REGION"},
	} {
		t.Run(name, func(t *testing.T) {
			bucket.Control(func(fakes3.Call) fakes3.Fault { return row.fault })
			defer bucket.Control(nil)
			c := clitest.Start(t, "", consume...)
			code, said := c.Wait(t), c.Err.String()
			if code != cli.ExitFailed || !strings.Contains(said, row.says) {
				t.Errorf("%d: %s", code, said)
			}
		})
	}
}

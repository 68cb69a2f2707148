// Package js_test tests the embedded Kinesis server with the unmodified AWS SDK of another
// language.
package js_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

func TestTheJavaScriptSDKReadsAndReshards(t *testing.T) {
	for http, proto := range map[string]string{"h1": "HTTP/1.1", "default": "HTTP/2.0"} {
		t.Run(http, func(t *testing.T) {
			srv := kinesistest.NewServer(t)
			var other atomic.Value // a call in an unexpected form
			srv.Control("", func(c *kinesistest.Call) kinesistest.Fault {
				if c.Proto != proto || c.Format != "json" {
					other.Store(c.Action + " over " + c.Proto + " in " + c.Format)
				}
				return kinesistest.Fault{}
			})
			began := time.Now()
			cmd := servers.Script(t, "reads.js", srv.URL(), http)
			var out, problems bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &problems
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, problems.String())
			}
			if what := other.Load(); what != nil {
				t.Errorf("%s, want JSON over %s", what, proto)
			}
			if n := srv.Requests("GetRecords"); n < 5 {
				t.Errorf("%d calls of GetRecords arrived", n)
			}
			var got struct {
				Split, Refused string
				Shards         map[string]struct {
					Parent  string
					Closed  bool
					Records []struct {
						Key, Data string
						Arrival   int64
					}
					Children []string
				}
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%v: %.300s", err, out.String())
			}

			if len(got.Shards) != 4 || got.Refused != "ResourceNotFoundException" {
				t.Errorf("%d shards, and a stream that does not exist is %q", len(got.Shards), got.Refused)
			}
			var children []string
			last := map[string]int{}
			read := func(id string) {
				for _, r := range got.Shards[id].Records {
					n, err := strconv.Atoi(strings.TrimPrefix(r.Data, "record "))
					if err != nil || r.Key != fmt.Sprintf("key-%d", n%7) {
						t.Errorf("record %+v", r)
					}
					if before, ok := last[r.Key]; ok && n != before+7 {
						t.Errorf("%s: %d follows %d", r.Key, n, before)
					}
					last[r.Key] = n
					if at := time.UnixMilli(r.Arrival); at.Before(began.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
						t.Errorf("%s arrived at %v", r.Data, at)
					}
				}
			}
			read(got.Split)
			total := 0
			for id, s := range got.Shards {
				total += len(s.Records)
				if s.Closed != (id == got.Split) {
					t.Errorf("%s: closed %v", id, s.Closed)
				}
				if s.Parent == got.Split {
					children = append(children, id)
				}
				if id != got.Split {
					read(id)
				}
			}
			slices.Sort(children)
			named := got.Shards[got.Split].Children
			slices.Sort(named)
			if len(children) != 2 || !slices.Equal(children, named) {
				t.Errorf("the listing has the children %v, the end of the parent names %v", children, named)
			}
			if total != 200 {
				t.Errorf("%d records were read, 200 were put", total)
			}
		})
	}
}

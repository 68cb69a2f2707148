package dashboard_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/store/memstore"
)

// queuesOf is a source of queues for the page.
type queuesOf struct {
	all     []dashboard.Queue
	letters []dashboard.QueueLetter
	err     error
	reads   int
	looks   int
}

func (q *queuesOf) Queues(context.Context) ([]dashboard.Queue, error) {
	q.reads++
	return q.all, q.err
}

func (q *queuesOf) DeadLetters(_ context.Context, arn string, most int) ([]dashboard.QueueLetter, error) {
	q.looks++
	return q.letters[:min(most, len(q.letters))], q.err
}

func twoQueues(now time.Time) *queuesOf {
	return &queuesOf{all: []dashboard.Queue{
		{
			Name: "audit", ARN: "arn:aws:kinesis:us-east-1:000000000000:queue/a", Stream: "orders", Status: "ACTIVE", MaxReceiveCount: 20,
			Visibility: 30 * time.Second, Metrics: dashboard.QueueMetrics{At: now, Visible: 7, InFlight: 1200, Received: 9, Acknowledged: 9, Over: time.Hour},
		},
		{
			Name: "billing", ARN: "arn:aws:kinesis:us-east-1:000000000000:queue/b", Stream: "orders", Status: "ACTIVE", MaxReceiveCount: 20, Created: now,
			Visibility: 30 * time.Second, Retention: 24 * time.Hour,
			Metrics: dashboard.QueueMetrics{At: now, Visible: -1, InFlight: -1, DeadLetters: 2, Over: time.Hour},
		},
	}, letters: []dashboard.QueueLetter{{RecordID: "abc<d", Arrived: now, FirstReceived: now, Receives: 21, Data: []byte(`{"n":1}`)}}}
}

func TestQueuesOnThePage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queues := twoQueues(time.Now())
		h := dashboard.Handler(memstore.New(), dashboard.Options{Queues: queues, ShowPayloads: true})
		get := func(path string, status int, wants ...string) string {
			t.Helper()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != status {
				t.Errorf("%s has status %d: %s", path, w.Code, w.Body)
			}
			for _, want := range wants {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("%s lacks %q: %s", path, want, w.Body)
				}
			}
			return w.Body.String()
		}
		list := get("/", 200, "2 queues, the worst first", `<a href="queue?queue=billing">billing</a>`, "with dead letters", `<td data-l="In flight">1,200</td>`, `<td data-l="Visible">not known</td>`)
		if strings.Index(list, "queue=billing") > strings.Index(list, "queue=audit") {
			t.Error("the worst queue is not the first")
		}
		get("/queue?queue=audit", 200, "1,200 of 120,000 at most (1 %)", "9, 9 acknowledged", "Look at the dead letters")
		get("/queue?queue=billing", 200, "Queue billing has 2 dead letters", "weir queue dead list --queue billing")
		if queues.reads != 1 || queues.looks != 0 {
			t.Errorf("%d reads and %d looks at dead letters", queues.reads, queues.looks)
		}
		get("/queue?queue=billing&dead=1", 200, "abc&lt;d", "1 dead letter", `<td data-l="Receives">21</td>`, "&#34;n&#34;: 1")
		get("/queue?queue=none", 404, "no queue of this name")

		// The page shows the last queues after an error.
		queues.all, queues.err = nil, errors.New("no permission for kinesis:ListQueues")
		time.Sleep(time.Minute)
		get("/", 200, "The queues could not be read: no permission", "queue=billing")
		get("/queue?queue=billing&dead=1", 200, "This may be old", "there may be more")
		if queues.reads != 2 {
			t.Errorf("%d reads", queues.reads)
		}
	})
}

func TestAPageWithoutQueues(t *testing.T) {
	t.Parallel()
	h := dashboard.Handler(memstore.New(), dashboard.Options{})
	for path, want := range map[string]string{"/": "This store has no applications", "/queue?queue=a": "This page does not show queues"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), `id="queues"`) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

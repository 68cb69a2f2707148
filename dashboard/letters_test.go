package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/store/memstore"
)

// given writes a file with dead letters. The application billing has n dead letters, of stream
// orders and shard 1. Another application has one.
func given(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "dead.ndjson")
	letter := func(app string, i int) deadletter.Letter {
		id := fmt.Sprintf("orders/shardId-000000000001/%d", 100+i)
		return deadletter.Letter{
			Version: deadletter.Version, ID: id, Stream: "orders", Shard: "shardId-000000000001", SequenceNumber: fmt.Sprint(100 + i), Position: fmt.Sprint(100 + i),
			PartitionKey: "customer-471", Data: []byte("a card's number"), App: app, GivenUp: time.Unix(1_700_000_000, 0).UTC(), Reason: deadletter.Attempts, Attempts: 3, Error: "<b>no</b> such currency",
		}
	}
	var all []deadletter.Letter
	for i := range n {
		all = append(all, letter("billing", i))
	}
	if err := deadletter.File(path).Put(t.Context(), append(all, letter("shipping", 900))); err != nil {
		t.Fatal(err)
	}
	return path
}

const lettersOfBilling = "/letters?app=billing"

// retries sends the retry form of the page of dead letters, and checks the answer.
func (d *desk) retries(status int, says string) {
	d.t.Helper()
	d.sends(d.form(lettersOfBilling, "retry-letters", "app", "billing"), status, says)
}

func states(t *testing.T, path string) (all string) {
	t.Helper()
	for i, err := range deadletter.File(path).Items(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all += " " + i.App[:1] + ":" + string(i.State)
	}
	return strings.TrimSpace(all)
}

func TestLettersAreShownWithoutKeysAndPayloads(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 2)
	h := dashboard.Handler(store, dashboard.Options{Letters: deadletter.File(given(t, 2))})
	page := shown(t, h, "/letters?app=billing", "2 records not handled again yet", "&lt;b&gt;no&lt;/b&gt; such currency", "attempts", "2023-11-14", "weir dead retry")
	for _, secret := range []string{"customer-471", "card", "shipping", "<form class=\"act\""} {
		if strings.Contains(page, secret) {
			t.Errorf("it shows %q", secret)
		}
	}
	shown(t, h, "/app?app=billing", `href="letters?app=billing"`)
	shown(t, h, "/shard?app=billing&stream=orders&shard=shardId-000000000001", `href="letters?app=billing&amp;shard=shardId-000000000001&amp;stream=orders"`)
	shown(t, h, "/letters?app=billing&shard=1&stream=orders&error=currency", "2 records")
	for _, none := range []string{"&shard=2", "&stream=clicks", "&error=timeout"} {
		shown(t, h, "/letters?app=billing"+none, "There are none")
	}
	many := dashboard.Handler(store, dashboard.Options{Letters: deadletter.File(given(t, 201))})
	shown(t, many, "/letters?app=billing", "200 records", "there are more")
	without := dashboard.Handler(store, dashboard.Options{})
	if w := answer(t, without, http.MethodGet, "/letters?app=billing"); w.Code != http.StatusNotFound {
		t.Errorf("without letters: %d", w.Code)
	}
	if page := shown(t, without, "/app?app=billing"); strings.Contains(page, "given up") {
		t.Error("it leads to dead letters that it does not know")
	}
}

func TestLettersAreHandledAgain(t *testing.T) {
	t.Parallel()
	path := given(t, 3)
	var handled []string
	d := sit(t, memstore.New(), dashboard.Options{Letters: deadletter.File(path), RetryLetter: func(_ context.Context, i deadletter.Item) error {
		handled = append(handled, i.Position+" "+string(i.Data))
		switch i.Position {
		case "101":
			return errors.New("still no such currency")
		case "102":
			panic("oh")
		}
		return nil
	}})
	form := d.form(lettersOfBilling, "retry-letters", "app", "billing")
	d.retries(http.StatusOK, "1 of 3 dead letters was handled again; 2 failed and stay.")
	if want := "[100 a card's number 101 a card's number 102 a card's number]"; fmt.Sprint(handled) != want {
		t.Errorf("handled %v, want %v", handled, want)
	}
	if got, want := states(t, path), "b:done b:kept b:kept s:kept"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if log := d.log.String(); !strings.Contains(log, "letters=3") || strings.Contains(log, "customer-471") {
		t.Errorf("the log says %s", log)
	}
	if a := d.asked[len(d.asked)-1]; a.Kind != dashboard.RetryLetters || len(a.Letters) != 3 || a.App != "billing" {
		t.Errorf("asked for %+v", a)
	}
	handled = nil
	d.sends(form, http.StatusBadGateway, "0 of 3 dead letters were handled again; 2 failed and stay; another process has handled 1 since.")
	if len(handled) != 2 {
		t.Errorf("handled %v", handled)
	}
	if err := deadletter.File(path).Mark(t.Context(), deadletter.Dropped, form["letter"][1:]...); err != nil {
		t.Fatal(err)
	}
	d.sends(form, http.StatusConflict, "Another process has handled these dead letters since.")
}

func TestLettersThatMayNotBeHandledAgain(t *testing.T) {
	t.Parallel()
	path := given(t, 1)
	ok := func(context.Context, deadletter.Item) error { return nil }
	d := sit(t, memstore.New(), dashboard.Options{Letters: deadletter.File(path), RetryLetter: ok})
	form := d.form(lettersOfBilling, "retry-letters", "app", "billing")
	with := func(ids ...string) url.Values {
		return url.Values{"do": {"retry-letters"}, "app": {"billing"}, "letter": ids}
	}
	d.sends(with(), http.StatusBadRequest, "names no dead letter")
	d.sends(with(make([]string, 201)...), http.StatusBadRequest, "at most 200 can be handled")
	d.sends(with(""), http.StatusBadRequest, "which is too long")
	d.sends(with(strings.Repeat("x", 5000)), http.StatusBadRequest, "which is too long")
	d.sends(with("orders/shardId-000000000001/1000"), http.StatusConflict, "Another process") // a dead letter of another application
	d.refuses = errors.New("not you")
	d.sends(form, http.StatusForbidden, "not you")
	if got := states(t, path); got != "b:kept s:kept" {
		t.Error(got)
	}
	showing := sit(t, memstore.New(), dashboard.Options{Letters: deadletter.File(path)})
	showing.sends(form, http.StatusForbidden, "cannot handle dead letters again")
	reading := dashboard.Handler(memstore.New(), dashboard.Options{Letters: deadletter.File(path), RetryLetter: ok})
	if page := shown(t, reading, "/letters?app=billing", "This page is read-only"); strings.Contains(page, `method="post"`) {
		t.Error("a page that only shows has a form that changes things")
	}
}

func TestHandlingLettersAgainEndsWithTheTimeOfAWrite(t *testing.T) {
	t.Parallel()
	path := given(t, 3)
	synctest.Test(t, func(t *testing.T) {
		d := sit(t, memstore.New(), dashboard.Options{Letters: deadletter.File(path), RetryLetter: func(ctx context.Context, i deadletter.Item) error {
			select {
			case <-time.After(30 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		form := d.form(lettersOfBilling, "retry-letters", "app", "billing")
		first := make(chan struct{})
		go func() {
			defer close(first)
			d.sends(form, http.StatusOK, "1 of 3 dead letters was handled again; 2 are left, and one of these may have been begun.")
		}()
		time.Sleep(time.Second)
		d.sends(form, http.StatusConflict, "Another user is retrying dead letters now")
		<-first
	})
	if got, want := states(t, path), "b:done b:begun b:kept s:kept"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

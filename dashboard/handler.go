package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/hostcheck"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/payload"
)

// Options configures the web page. The zero value is a read-only page that uses only the store.
type Options struct {
	// Prefix is the path under which the handler is mounted, for example /admin/weir. The default
	// is no prefix. Leave Prefix empty if http.StripPrefix or a reverse proxy removes the prefix.
	// The links of the page still work then, because all of them are relative.
	Prefix string
	// Kinesis lists the shards of a stream with their creation and closing times, and returns the
	// retention period. For each stream that it shows, the page makes one listing every 30 s, or
	// every 2 s while the listing lacks a shard that has a lease. Without Kinesis, the page uses
	// only the leases. The leases lack the retention period and some of the times. Optional.
	Kinesis Kinesis
	// Lags returns the lag of each of the given leases. It may omit leases whose lag is unknown.
	// The page calls Lags with the unfinished leases of an application that it shows. The interval
	// between calls is 5 s, or 50 ms per lease for more than 100 leases. In between, the page calls
	// Lags only for new leases. Calls for different applications may overlap. The context of a call
	// ends after 10 s. The page shows a returned error.
	//
	// Without Lags, the page shows the age of each checkpoint. It then cannot show whether records
	// are waiting after the checkpoint. Optional.
	Lags func(ctx context.Context, leases []lease.Lease) (map[lease.Key]Lag, error)
	// Hosts lists additional host names that the page accepts on a loopback connection. An example
	// is the name of a reverse proxy on the same machine that forwards the original Host header. IP
	// addresses and localhost are always accepted. The default is an empty list.
	//
	// On every connection, the page accepts writes only under these names, localhost and IP
	// addresses. A program that sets Authorize must add the host name under which users open the
	// page.
	Hosts []string
	// Authorize enables changes: pausing, draining, moving checkpoints and retrying dead letters.
	// The page calls it before each write. A returned error refuses the write, and the user sees
	// the error. Calls may overlap. Without Authorize, the page is read-only. Optional.
	Authorize func(*http.Request, Action) error
	// User returns the name of the user who sent a request. The name appears in the log and on the
	// page with the forms. The name does not control access. By default there is no name.
	User func(*http.Request) string
	// SaveProgress saves the progress of an application before a Reset, and returns the location to
	// show to the user. progress contains lines in the format of "weir group import". SaveProgress
	// may keep the slice. An error cancels the reset before anything is changed. Resets are refused
	// if SaveProgress or Kinesis is not set.
	SaveProgress func(ctx context.Context, app string, progress []byte) (place string, err error)
	// Letters contains the dead letters. The page shows the unhandled dead letters of an
	// application: record, time, reason and error, but never the key. The page stops reading the
	// dead letters after 10 s. Without Letters the page shows no dead letters. Optional.
	Letters deadletter.Box
	// LettersPlace says to users where the dead letters are stored, for example "file:dead.ndjson".
	// It must not contain a password. The default is "": the page does not say it.
	LettersPlace string
	// ShowPayloads makes the page of dead letters show the payloads, decoded, and at most 4 KiB of
	// each. Payloads can contain personal data, and every user of the page can read them. The
	// default is false.
	ShowPayloads bool
	// Codecs decode the payloads that ShowPayloads shows, by the names that the page shows, such as
	// "zstd". Limit the size of the decoded data in each codec. The page always decodes "gzip", up
	// to 1 MiB. Payloads that cannot be decoded are shown as they are. Optional.
	Codecs map[string]payload.Codec
	// RetryLetter handles the record of a dead letter again, like [deadletter.Retry]. The page
	// calls it when an authorized user asks for a retry. The page retries one dead letter at a
	// time. All dead letters of a request share the 50 s of a write, and the context ends after
	// that time. Without RetryLetter, the page can only show dead letters. Optional.
	RetryLetter func(context.Context, deadletter.Item) error
	// Queues reads Kinesis queues. The page shows them after the applications, with a view for each
	// queue. Without Queues the page shows no queues. Optional.
	Queues Queues
	// Logger logs each write and each refused write, with the user. The default is slog.Default().
	Logger *slog.Logger
}

// Lag is the lag of a shard behind its checkpoint.
type Lag struct {
	// Behind is the age of the oldest record after the checkpoint. It is 0 if there is no such
	// record.
	Behind time.Duration
	// Expired reports that the record at the checkpoint and all earlier records have left the
	// stream. Records after the checkpoint may have expired too.
	Expired bool
}

var errCannotList = errors.New("this store cannot list its applications: open one by its name")

//go:embed assets
var assets embed.FS

// Handler returns the page for the applications of a store. It may be mounted at any path. A
// consumer in the same process may use the same store. The handler queries the store only for
// requests. While the store answers, all requests within a second share one read of an application.
// The handler keeps no goroutine between requests.
//
// Without Options.Authorize the page is read-only, and the handler accepts only GET and HEAD. With
// Authorize, a write must be a POST that the page itself sent. The request contains the state that
// the page showed. The handler refuses the write if the state has changed since then.
//
// The handler asks for no password. Every client sees the names of streams, shards and workers,
// positions and error texts. Put the page behind the same authentication as your other tools.
func Handler(store lease.Store, o Options) http.Handler {
	h := &handler{
		observer: newObserver(store, o), opts: o, queues: queueCache{turn: make(chan struct{}, 1)},
		codecs: map[string]payload.Codec{"gzip": payload.Gzip{MaxBytes: mostUnpacked}},
	}
	maps.Copy(h.codecs, o.Codecs)
	o.Prefix = strings.TrimSuffix(o.Prefix, "/")
	var served http.Handler = h
	if o.Prefix != "" {
		served = http.StripPrefix(o.Prefix, h)
	}
	own := http.NewCrossOriginProtection()
	own.SetDenyHandler(http.HandlerFunc(h.serveForeign))
	return own.Handler(served)
}

type handler struct {
	observer *observer
	opts     Options
	queues   queueCache
	codecs   map[string]payload.Codec // of shown payloads
	retrying sync.Mutex               // held while retrying dead letters
}

// policy is the Content-Security-Policy of the page. It allows only resources from the page's own
// origin.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	if !hostcheck.Allows(r, h.opts.Hosts...) {
		http.Error(w, "over a loopback address this page answers only requests for localhost, for IP addresses, and for the host names in Options.Hosts (weir dashboard --host)", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodPost && r.URL.Path == "/write" {
		h.serveWrite(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "this page is read-only: only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	// The handler was mounted without a trailing slash. The redirect is relative, because a proxy
	// may have removed a prefix.
	case "":
		place, _, _ := strings.Cut(r.RequestURI, "?")
		head.Set("Location", "./"+path.Base(place)+"/")
		w.WriteHeader(http.StatusMovedPermanently)
	case "/write": // a sign-in page redirects here if the session ended before the form was sent
		head.Set("Location", "./")
		w.WriteHeader(http.StatusSeeOther)
	case "/":
		h.serveApps(w, r)
	case "/app":
		h.serveApp(w, r)
	case "/shard":
		h.serveShard(w, r)
	case "/events":
		h.serveEvents(w, r)
	case "/letters":
		h.serveLetters(w, r)
	case "/queue":
		h.serveQueue(w, r)
	case "/change":
		h.serveChange(w, r)
	case "/reset":
		h.serveReset(w, r)
	case "/page.css", "/page.js":
		h.serveAsset(w, r)
	default:
		http.Error(w, "there is no such page", http.StatusNotFound)
	}
}

func (h *handler) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	kind := "text/css; charset=utf-8"
	if path.Ext(name) == ".js" {
		kind = "text/javascript; charset=utf-8"
	}
	w.Header().Set("Cache-Control", "max-age=60")
	if unchanged(w, r, text) {
		return
	}
	send(w, r, http.StatusOK, kind, text)
}

// render answers with a whole page, or with only its dynamic part if the query has the parameter
// part.
func (h *handler) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	h.renderOnce(w, r, status, name, nil, func() any { return data })
}

// renderOnce is like render for a view of one read of an application. If views has the same view
// already, renderOnce sends it again. If the client has the same text, the answer is 304.
func (h *handler) renderOnce(w http.ResponseWriter, r *http.Request, status int, name string, views *kept, data func() any) {
	begun, streamed := w.(*shell)
	switch {
	case streamed:
		name = "rest " + name
	case r.URL.Query().Get("part") == "":
		name = "page " + name
	}
	text, err := views.view(name+"?"+r.URL.RawQuery, func() ([]byte, error) {
		var text bytes.Buffer
		err := pages.ExecuteTemplate(&text, name, data())
		return withoutControls(text.Bytes()), err
	})
	switch {
	case err != nil && streamed:
		begun.finish([]byte("The page cannot be rendered."))
		return
	case err != nil:
		http.Error(w, "the page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	case streamed:
		begun.finish(text)
		return
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Weir-Page", "down") // it is this page, and not one of a proxy
	case views != nil && status == http.StatusOK:
		w.Header().Set("Cache-Control", "private, no-cache")
		if unchanged(w, r, text) {
			return
		}
	}
	send(w, r, status, "text/html; charset=utf-8", text)
}

func setKind(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept, Accept-Encoding")
}

func send(w http.ResponseWriter, r *http.Request, status int, kind string, text []byte) {
	setKind(w, kind)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(text) > 1400 {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(text); err == nil && z.Close() == nil { // cannot fail: it writes to memory
			w.Header().Set("Content-Encoding", "gzip")
			text = packed.Bytes()
		}
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // the client may have disconnected
	}
}

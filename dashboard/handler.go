package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/hostcheck"
	"github.com/weir-go/weir/lease"
)

// Options configures the page. The zero value is a page that only uses the store.
type Options struct {
	// Prefix is the path under which the handler is mounted, such as /admin/weir, unless
	// http.StripPrefix or a reverse proxy removes it. All links of the page are relative, so a
	// removed prefix need not be configured. Defaults to none.
	Prefix string
	// Kinesis lists the shards of a stream with their creation and closing times, and returns its
	// retention: one listing every half minute for each stream that is shown. Without it the page
	// uses the leases only, which lack some times and the retention. Optional.
	Kinesis Kinesis
	// Lags returns how far shards are behind. It is called with the unfinished leases of an
	// application that is shown, every 5 s or, with more than 100 leases, at an interval of 50 ms
	// per lease. It omits leases with unknown lag. The page shows its error. Its context ends after
	// 10 s. Calls for several applications may overlap. Without it the page shows the age of each
	// checkpoint, but not whether records wait after it. Optional.
	Lags func(ctx context.Context, leases []lease.Lease) (map[lease.Key]Lag, error)
	// Hosts are additional host names that are accepted on a loopback connection, for example when
	// a reverse proxy on the same machine passes on its own name. IP addresses and localhost are
	// always accepted. Defaults to none.
	//
	// Writes are accepted only under these names, localhost and IP addresses, on any connection. A
	// program that sets Authorize must add its own name.
	Hosts []string
	// Authorize enables changes: pause, drain, move checkpoints, retry dead letters. It is called
	// before each write; an error refuses the write, and is shown to the user. Calls may overlap.
	// Without it the page is read-only. Optional.
	Authorize func(*http.Request, Action) error
	// User returns the name of the user, for the log and for the page with the forms. It does not
	// control access. Defaults to no name.
	User func(*http.Request) string
	// SaveProgress stores the progress of an application before a Reset, and returns the location
	// for the user. It gets lines of text in the format of "weir group import", which it may keep.
	// An error cancels the reset before any change. Without it, or without Kinesis, resets are
	// refused.
	SaveProgress func(ctx context.Context, app string, progress []byte) (place string, err error)
	// Letters contains the dead letters. The page shows the unhandled letters of an application:
	// record, time, reason and error, without key and payload. Reading them ends after 10 s.
	// Without it the page shows none. Optional.
	Letters deadletter.Box
	// RetryLetter handles the record of a letter again, as in [deadletter.Retry], at the request of
	// an authorized user. Letters are handled one at a time, all within the 50 s of a write; its
	// context ends then. Without it letters are only shown. Optional.
	RetryLetter func(context.Context, deadletter.Item) error
	// Logger logs each write, done or refused, with the user. Defaults to slog.Default().
	Logger *slog.Logger
}

// Lag is the lag of a shard behind its checkpoint.
type Lag struct {
	// Behind is the age of the oldest record after the checkpoint, or 0 without such a record.
	Behind time.Duration
	// Expired reports that all records up to the checkpoint have left the stream, so later records
	// may have left it too.
	Expired bool
}

var errCannotList = errors.New("this store cannot list its applications: open one by its name")

//go:embed assets
var assets embed.FS

// Handler returns the page for a store's applications. Without Options.Authorize it is read-only
// and accepts only GET and HEAD. With it, a write must be a POST from the page itself. The request
// contains the displayed state, and is refused if that has changed. The handler may be mounted
// anywhere, and a consumer of the same process may use its store. It queries the store only while
// the page is open, at most once a second per application, and starts no goroutine. It asks for no
// password: every client sees names of streams, shards and workers, positions and error texts, so
// put it behind the same authentication as your other tools.
func Handler(store lease.Store, o Options) http.Handler {
	h := &handler{observer: newObserver(store, o), opts: o}
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
	retrying sync.Mutex // letters
}

// policy only allows resources from the page's own origin.
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
	// mounted without its last slash; the redirect is relative because a proxy may have removed a
	// prefix
	case "":
		place, _, _ := strings.Cut(r.RequestURI, "?")
		head.Set("Location", "./"+path.Base(place)+"/")
		w.WriteHeader(http.StatusMovedPermanently)
	case "/write": // a sign-in page leads here if the session ended before the form was sent
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
	send(w, r, http.StatusOK, kind, text)
}

// render answers with a page, or with its dynamic part.
func (h *handler) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var text bytes.Buffer
	if r.URL.Query().Get("part") == "" {
		name = "page " + name
	}
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		http.Error(w, "the page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, r, status, "text/html; charset=utf-8", text.Bytes())
}

func send(w http.ResponseWriter, r *http.Request, status int, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(text) > 1400 {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(text); err == nil && z.Close() == nil { // into memory
			w.Header().Set("Content-Encoding", "gzip")
			text = packed.Bytes()
		}
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // the client may have disconnected
	}
}

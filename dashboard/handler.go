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

// Options are what a page may know beside the store. The zero value is a page of what the store
// knows.
type Options struct {
	// Prefix is the path that the handler is mounted under, such as /admin/weir, when nothing in
	// front of it strips that (http.StripPrefix or a reverse proxy). All links of the page are
	// relative, so it need not be known where it is stripped. Default: none.
	Prefix string
	// Kinesis, if any, is asked for the shards of a stream, when they were opened and closed, and
	// how long records are kept: a listing each half minute of each stream that somebody looks at.
	// Without it the page shows what leases know, which lack some times, and no edge of retention.
	Kinesis Kinesis
	// Lags, if any, is asked how far shards are behind. It is called with the unfinished leases of
	// an application that somebody looks at, every 5 s or, with more than 100 leases, once in 50 ms
	// for each, and leaves out those it could not find out. The error says why; it is shown. Its
	// context ends after 10 s. Calls for several applications may overlap. Without it the page
	// tells of each checkpoint how old it is, and not whether records wait after it.
	Lags func(ctx context.Context, leases []lease.Lease) (map[lease.Key]Lag, error)
	// Hosts are names by which a browser may ask for the page over a loopback connection, as when a
	// reverse proxy on the same machine passes its own name on. Addresses and localhost always
	// may. Default: no other.
	//
	// A write is answered under these names, localhost and addresses only, wherever it comes in: a
	// program that sets Authorize names its own here, too.
	Hosts []string
	// Authorize, if any, has the page change things: pause, drain, move checkpoints, have letters
	// be handled again. It is called with each write, before it is done, and says who may: an error
	// refuses it, and is shown to who asked. Calls may overlap. Default: nobody may, and the page
	// only shows.
	Authorize func(*http.Request, Action) error
	// User names who asks, for the log and for the page that shows what can be changed. It decides
	// nothing. Default: nobody is named.
	User func(*http.Request) string
	// SaveProgress keeps the progress of an application before a Reset, and returns the place for
	// who asked. It gets lines of text as "weir group import" reads them, which it may keep. An
	// error ends the reset before anything is changed. Without it, or without Kinesis, resets are
	// refused.
	SaveProgress func(ctx context.Context, app string, progress []byte) (place string, err error)
	// Letters, if any, are those of records that were given up. The page shows the ones of an
	// application about which nothing was done yet: which record, when, why, and with which error;
	// neither keys nor payloads. Looking through them ends after 10 s. Default: it shows none.
	Letters deadletter.Box
	// RetryLetter handles the record of a letter again, as [deadletter.Retry] says, when somebody
	// asks for that whom Authorize lets. One is handled at a time, within the 50 s of a write for
	// all that were asked for; its context ends then. Default: letters are only shown.
	RetryLetter func(context.Context, deadletter.Item) error
	// Logger is told of each write, done or refused, and of who asked. Default: slog.Default().
	Logger *slog.Logger
}

// Lag is how far a shard is behind its checkpoint.
type Lag struct {
	// Behind is the age of the oldest record after the checkpoint, 0 when there is none.
	Behind time.Duration
	// Expired says that everything up to the checkpoint has left the stream, so that records after
	// it may have, too.
	Expired bool
}

var errCannotList = errors.New("this store cannot list the applications that it keeps: open one by its name")

//go:embed assets
var assets embed.FS

// Handler is the page of a store's applications. Without Options.Authorize it answers GET and HEAD
// only and writes nothing. With it a write is a POST that comes from the page itself, carries what
// was shown, and is refused when that has changed. It may be mounted anywhere; its store may be in
// use by a consumer of the same process. It asks the store only while somebody has the page open,
// at most once a second for an application, and starts no goroutine. It asks nobody for a password:
// whoever reaches it sees names of streams, shards and workers, positions and error texts, so put
// it behind what the rest of your tools is behind.
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

// policy lets a page load what comes from where it came from, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	if !hostcheck.Allows(r, h.opts.Hosts...) {
		http.Error(w, "over a loopback address this page answers to localhost, to IP addresses and to the names it was told (Options.Hosts, weir dashboard --host), not to other names", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodPost && r.URL.Path == "/write" {
		h.serveWrite(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "this is only shown: GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case "": // mounted without its last slash; relative, since what is in front may have stripped more
		place, _, _ := strings.Cut(r.RequestURI, "?")
		head.Set("Location", "./"+path.Base(place)+"/")
		w.WriteHeader(http.StatusMovedPermanently)
	case "/write": // where a sign-on in front leads whose session had ended when a form was sent
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

// render answers with a page, or with the part of it that changes.
func (h *handler) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var text bytes.Buffer
	if r.URL.Query().Get("part") == "" {
		name = "page " + name
	}
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
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
		_, _ = w.Write(text) // who asked may have left
	}
}

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/hostcheck"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

// ActionKind is the kind of an [Action].
type ActionKind string

// The kinds of actions, as they appear in the log of writes.
const (
	// Pause stops reading of Stream until a Resume. An empty Stream pauses the whole application.
	Pause  ActionKind = "pause"
	Resume ActionKind = "resume"
	// Drain makes a worker hand off its leases and take no new ones, until an EndDrain. Worker is
	// the worker's session.
	Drain    ActionKind = "drain"
	EndDrain ActionKind = "end-drain"
	// Reset moves checkpoints to To: oldest, latest, a time, or a duration ago. With a Shard, it
	// moves the checkpoints of that shard and its descendants. Otherwise it moves all checkpoints
	// of Stream. An empty Stream means all streams.
	Reset ActionKind = "reset"
	// RetryLetters handles the records of Letters again with [Options].RetryLetter.
	RetryLetters ActionKind = "retry-letters"
)

// Action is a requested write. Fields that the Kind does not use are empty.
type Action struct {
	Kind   ActionKind
	App    string
	Stream string
	Shard  string
	Worker string // session of the worker
	To     string
	// Letters contains the IDs of at most 200 dead letters.
	Letters []string
}

const (
	mostForm   = 4 << 20          // maximum size of a form in bytes
	writeBound = 50 * time.Second // time limit of a write; short enough for the client to get its answer
	mostUser   = 128              // maximum length of a user's name in the log, in runes
)

// refusal is an error that refuses a write. status is the HTTP status of the answer.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Sprintf(format, args...)}
}

// readOnly is the answer to a write on a read-only page.
const readOnly = "This page is read-only. It can change things only if it was started with --allow-writes, or with Options.Authorize."

// writtenPage is the page that reports the result of a write.
type writtenPage struct {
	pageHead
	Done    bool
	Text    string
	Notes   []string
	Letters string // link to the dead letters
}

// serveWrite carries out the action of a form, or explains why it refuses the action. It logs each
// write.
func (h *handler) serveWrite(w http.ResponseWriter, r *http.Request) {
	a, err := h.readForm(w, r)
	if err == nil {
		if err = h.opts.Authorize(r, a); err != nil {
			err = refusal{http.StatusForbidden, err.Error()}
		}
	}
	p := writtenPage{pageHead: stillHead("Changing "+a.App, a.App)}
	if a.Kind == RetryLetters {
		p.Letters = h.lettersLink(a.App, lease.Key{})
	}
	if err == nil {
		// The client may disconnect, but a write that has started must still be completed.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), writeBound)
		defer cancel()
		p.Text, p.Notes, err = h.write(ctx, r, a)
	}
	h.log(r, a, p.Text, err)
	status := http.StatusOK
	switch why := (refusal{}); {
	case err == nil:
		p.Done = true
	case errors.As(err, &why):
		status, p.Text = why.status, why.text
	default:
		status, p.Text = http.StatusBadGateway, "It is not known whether this was done, because the store gave an invalid answer: "+err.Error()
	}
	h.render(w, r, status, "written", p)
}

// serveForeign refuses a request that a page of another site sent. It logs the request if it could
// have changed something.
func (h *handler) serveForeign(w http.ResponseWriter, r *http.Request) {
	const text = "The request comes from a page of another site (cross-origin). Nothing was changed."
	if h.opts.Authorize != nil {
		h.log(r, Action{}, "", refusal{http.StatusForbidden, text})
	}
	http.Error(w, text, http.StatusForbidden)
}

// stillHead returns the head of a page that does not update itself.
func stillHead(title, app string) pageHead { return headOf(title, app, 0) }

// readForm checks that the form of a write comes from this page, and parses the form.
func (h *handler) readForm(w http.ResponseWriter, r *http.Request) (Action, error) {
	if h.opts.Authorize == nil {
		return Action{}, refusal{http.StatusForbidden, readOnly}
	}
	if !hostcheck.Named(r.Host, h.opts.Hosts...) {
		return Action{}, refuse(http.StatusForbidden, "This page changes things only if it was requested from localhost, from an IP address, or from a host name in Options.Hosts (weir dashboard --host), and not from %q.", r.Host)
	}
	if !fromThisPage(r) {
		return Action{}, refuse(http.StatusForbidden, "Neither Sec-Fetch-Site nor Origin proves that the request comes from this page. A proxy in front has to pass on the browser's Host header.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		return Action{}, refuse(http.StatusBadRequest, "The form cannot be read: %v", err)
	}
	return actionOf(r.PostForm)
}

// fromThisPage reports whether the browser's headers prove that this page sent the request.
// Requests without a proof are refused.
func fromThisPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "": // browsers send only Origin over plain HTTP to another machine
		origin, err := url.Parse(r.Header.Get("Origin"))
		return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
	}
	return false
}

// actionOf parses a form and returns its action.
func actionOf(form url.Values) (Action, error) {
	a := Action{Kind: ActionKind(form.Get("do")), App: form.Get("app")}
	if err := lease.CheckApp(a.App); err != nil {
		return Action{}, refuse(http.StatusBadRequest, "This is not the name of an application: %v", err)
	}
	switch a.Kind {
	case Pause, Resume:
		a.Stream = form.Get("stream")
	case Drain, EndDrain:
		if a.Worker = form.Get("worker"); a.Worker == "" {
			return Action{}, refuse(http.StatusBadRequest, "The form names no worker.")
		}
	case Reset:
		a.Stream, a.Shard, a.To = form.Get("stream"), form.Get("shard"), form.Get("to")
	case RetryLetters:
		ids, err := lettersOf(form)
		if err != nil {
			return Action{}, err
		}
		a.Letters = ids
	default:
		return Action{}, refuse(http.StatusBadRequest, "There is no action %.40q.", a.Kind)
	}
	for _, name := range []string{a.Stream, a.Shard, a.Worker, a.To} {
		if len(name) > lease.MaxNameBytes {
			return Action{}, refuse(http.StatusBadRequest, "The form has a name of %d bytes, which is too long.", len(name))
		}
	}
	return a, nil
}

// write carries out an action. text describes what was done, even if the rest failed.
func (h *handler) write(ctx context.Context, r *http.Request, a Action) (text string, notes []string, err error) {
	switch a.Kind {
	case Reset:
		return h.reset(ctx, r, a)
	case RetryLetters:
		return h.retry(ctx, a)
	}
	view, err := h.viewNow(ctx, a.App)
	if err != nil {
		return "", nil, err
	}
	seen := r.PostForm.Get("seen")
	if a.Kind == Pause || a.Kind == Resume {
		text, err = h.pause(ctx, view, a, seen, cmp.Or(h.user(r), "a user")+" of the web page")
	} else {
		text, err = h.drain(ctx, view, a, seen)
	}
	return text, nil, err
}

// viewNow reads an application from the store. It returns an error if the application does not
// exist.
func (h *handler) viewNow(ctx context.Context, app string) (lease.View, error) {
	view, err := h.observer.store.View(ctx, app, "")
	if err != nil {
		return view, refuse(http.StatusBadGateway, "The store does not answer, so nothing was changed: %v", err)
	}
	if len(view.Leases)+len(view.Workers)+len(view.Paused) == 0 {
		return view, refuse(http.StatusNotFound, "The store has no application with this name.")
	}
	return view, nil
}

func (h *handler) pause(ctx context.Context, view lease.View, a Action, seen, by string) (string, error) {
	on := a.Kind == Pause
	if changed := pausesChanged(seen, view.Paused); changed != "" {
		return "", refuse(http.StatusConflict, "%s", changed)
	}
	if a.Stream != "" && !slices.Contains(streamsOf(view.Leases), a.Stream) && (on || !slices.Contains(view.Paused, a.Stream)) {
		return "", refuse(http.StatusConflict, "%s has no leases of a stream %s.", a.App, a.Stream)
	}
	_, err := operate.SetPause(ctx, h.observer.store, a.App, view, a.Stream, on, by)
	switch what := pausable(a.Stream); {
	case errors.Is(err, operate.ErrPausedEnough):
		return "", refuse(http.StatusConflict, "%v", err)
	case err != nil:
		return "", err
	case on:
		return what + " is paused. Workers save their progress and give the leases back.", nil
	default:
		return what + " is no longer paused. The leader assigns the leases within a heartbeat interval.", nil
	}
}

func (h *handler) drain(ctx context.Context, view lease.View, a Action, seen string) (string, error) {
	at := slices.IndexFunc(view.Workers, func(w lease.Worker) bool { return w.Session == a.Worker && !w.Ended })
	if at < 0 {
		return "", refuse(http.StatusConflict, "The worker of session %s has ended since.", a.Worker)
	}
	of := &view.Workers[at]
	if changed := drainChanged(seen, of); changed != "" {
		return "", refuse(http.StatusConflict, "%s", changed)
	}
	err := operate.SetDrain(ctx, h.observer.store, a.App, []string{a.Worker}, a.Kind == Drain)
	switch {
	case errors.Is(err, operate.ErrWorkerEnded):
		return "", refuse(http.StatusConflict, "%v", err)
	case err != nil:
		return "", err
	case a.Kind == EndDrain:
		return nameOf(of) + " takes leases again.", nil
	}
	text := nameOf(of) + " is drained: its leases move to other workers, a few at a time."
	if !slices.ContainsFunc(view.Workers, func(w lease.Worker) bool {
		return w.Session != a.Worker && !w.Ended && !w.Leaving && !w.Drain
	}) {
		text += " No other worker takes leases, so it keeps its own until one does."
	}
	return text, nil
}

// log logs an action, its user and its result.
func (h *handler) log(r *http.Request, a Action, text string, err error) {
	attrs := h.attrs(r, a)
	if text != "" {
		attrs = append(attrs, slog.String("did", clean(text)))
	}
	switch why := (refusal{}); {
	case err == nil:
		h.logger().LogAttrs(r.Context(), slog.LevelInfo, "page: changed", attrs...)
	case text != "":
		h.logger().LogAttrs(r.Context(), slog.LevelError, "page: a change was made in part", append(attrs, slog.Any("err", err))...)
	case errors.As(err, &why):
		h.logger().LogAttrs(r.Context(), slog.LevelWarn, "page: a change was refused", append(attrs, slog.String("why", clean(why.text)))...)
	default:
		h.logger().LogAttrs(r.Context(), slog.LevelError, "page: a change failed", append(attrs, slog.Any("err", err))...)
	}
}

// attrs returns the log attributes of an action and its user.
func (h *handler) attrs(r *http.Request, a Action) []slog.Attr {
	attrs := []slog.Attr{slog.String("action", string(a.Kind)), slog.String("app", a.App)}
	for _, of := range []struct{ key, value string }{{"stream", a.Stream}, {"shard", a.Shard}, {"worker", a.Worker}, {"to", a.To}} {
		if of.value != "" {
			attrs = append(attrs, slog.String(of.key, clean(of.value)))
		}
	}
	if n := len(a.Letters); n > 0 {
		attrs = append(attrs, slog.Int("letters", n), slog.String("first", clean(a.Letters[0])))
	}
	return append(attrs, slog.String("user", h.user(r)), slog.String("remote", r.RemoteAddr))
}

func (h *handler) logger() *slog.Logger {
	if h.opts.Logger != nil {
		return h.opts.Logger
	}
	return slog.Default()
}

// user returns the name of the user who sent r, in a form that is safe to log.
func (h *handler) user(r *http.Request) string {
	if h.opts.User == nil {
		return ""
	}
	name := []rune(clean(h.opts.User(r)))
	return string(name[:min(len(name), mostUser)])
}

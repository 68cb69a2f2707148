package dashboard

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"clean":   clean,
	"first":   func(s string) string { return clean(strings.ToUpper(s[:1]) + s[1:]) },
	"why":     why,
	"reason":  health.ReportedWords,
	"millis":  time.Time.UnixMilli,
	"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" },
	"stamp":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") },
	"moment":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" },
	"short":   short,
	"ago":     ago,
	"lagOf":   lagOf,
	"rate":    rateThen,
	"appLink": func(app string) string { return link("app", "app", app) },
}).ParseFS(assets, "assets/*.html"))

// clean replaces characters that are not printable. Examples are marks for the text direction,
// which could change how a line reads.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// why returns the text of an error of AWS or of the store for people.
func why(err error) string { return clean(errtext.Short(err.Error())) }

// withoutControls replaces control characters in HTML, which come from names and errors, by
// character references. Forms keep their values, and a terminal that shows the HTML does not obey
// them. A control character without a reference becomes the replacement character.
func withoutControls(html []byte) []byte {
	control := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
	}
	if !bytes.ContainsFunc(html, control) {
		return html
	}
	var b bytes.Buffer
	for _, r := range string(html) {
		switch {
		case !control(r):
			b.WriteRune(r)
		case r == 0 || r >= 0x7f:
			b.WriteRune(unicode.ReplacementChar)
		default:
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	return b.Bytes()
}

// rateThen formats a throughput that the owner of a shard reported.
func rateThen(l lease.Load) string {
	if l == 0 {
		return "not known"
	}
	return observe.Rate(l.Bytes())
}

func ago(now, t time.Time) string {
	if t.IsZero() {
		return "not known"
	}
	return short(now.Sub(t)) + " ago"
}

func lagOf(known bool, lag time.Duration) string {
	if !known {
		return "not known"
	}
	return short(lag)
}

// link returns a relative link with parameters. nameValues contains names and values in turn.
// Parameters with an empty value are omitted.
func link(page string, nameValues ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(nameValues); i += 2 {
		if nameValues[i+1] != "" {
			q.Set(nameValues[i], nameValues[i+1])
		}
	}
	return page + "?" + q.Encode()
}

// pageHead contains what the head of every page needs.
type pageHead struct {
	Title, App, AppLink, Shard string
	Queue                      string
	Now                        time.Time
	Poll                       int64  // milliseconds between two updates
	Old                        string // why the data is old, or ""
	Down                       down
	Tabs                       []tab
	Loading                    bool // the data is not read yet
}

// down describes a service that does not answer. It is the zero value if all services answer.
type down struct {
	What  string // "The store" or "Kinesis"
	Since string
	Why   string // the error
	Still string // what the page shows, and what still works
	// Answers reports that the service answers, and that each answer is an error.
	Answers bool
	store   bool
}

// Says describes the failure in a few words.
func (d down) Says() string {
	if d.Answers {
		return d.What + " answers with an error"
	}
	return d.What + " does not answer"
}

// Lasts describes the failure with its beginning.
func (d down) Lasts() string {
	if d.Answers {
		return d.What + " has answered with an error since " + d.Since
	}
	return d.What + " has not answered since " + d.Since
}

type choice struct {
	Name, Link string
	Now        bool
}

// drawing is a picture, with all its values formatted for SVG.
type drawing struct {
	Width, Height, Edge     string
	Boxes                   []drawnBox
	Labels                  []drawnLabel
	Lag, Hatch, Dots, Marks string // SVG paths
	Axis                    []tick
	Merged                  int
	About                   string // text that introduces Scale
	Scale                   []swatch
	States                  bool // the colours show states
	Thin                    bool // the rows are too thin for separators
	Heat                    *heat
	boxes                   []box
	from, to                time.Time
}

type drawnBox struct{ X, Y, W, H, Class, Title, Link, Name string }

type drawnLabel struct{ Y, Name string }

// tick is a time on the axis of a picture.
type tick struct {
	X, Anchor, Text string // X is in percent
	At              time.Time
	Minor           bool // narrow windows hide the text
}

// drawShards draws the given shards of a stream.
func drawShards(v view, shards []shardInfo, from, to time.Time, retention time.Duration) *drawing {
	var pieces []piece
	by := metricOf(v.by)
	for i, of := range shards {
		if of.Unplaced {
			continue
		}
		pieces = append(pieces, piece{at: i, hashes: of.Range, opened: of.Opened, closed: of.Closed, done: of.Handled, heat: by.heat(&of)})
	}
	p := draw(zoomed(pieces, v.keys), from, to, mostRows)
	d := &drawing{Width: number(p.width), Height: number(p.height), Merged: p.merged, Thin: p.rows > 100}
	if at := to.Add(-retention); retention > 0 && at.After(from) {
		d.Edge = number(p.width * float64(at.Sub(from)) / float64(to.Sub(from)))
	}
	var lag, hatch, dots, marks strings.Builder
	for _, b := range p.boxes {
		of := &shards[b.of[0]]
		const least = 3 // width of a box whose shard was just opened, so that it is visible
		if b.w < least {
			b.x, b.w = min(b.x, p.width-least), least
		}
		title, to := titleOf(shards, b.of), link("shard", "app", v.app, "stream", of.Stream, "shard", of.Shard)
		if several, opens := v.opened(shards, b.of); opens {
			title, to = title+", which it opens", several.link()
		}
		d.Boxes = append(d.Boxes, drawnBox{number(b.x), number(b.y), number(b.w), number(b.h), by.class(of), title, to, of.Shard + " " + strconv.Itoa(len(b.of))})
		switch of.State {
		case health.Stalled:
			rectangle(&hatch, b.x, b.y, b.w, b.h)
		case health.Unread, health.Idle:
			rectangle(&dots, b.x, b.y, b.w, b.h)
		}
		if b.mark < 0 {
			continue
		}
		fmt.Fprintf(&marks, "M%s %sv%s", number(b.mark), number(b.y), number(b.h))
		if by == nil && of.LagKnown && of.Lag > enough { // with a metric, the mark would change the shade
			rectangle(&lag, b.mark, b.y, b.x+b.w-b.mark, b.h)
		}
	}
	d.Lag, d.Hatch, d.Dots, d.Marks = lag.String(), hatch.String(), dots.String(), marks.String()
	next := 0.0 // keeps labels from overlapping
	for _, l := range p.labels {
		const line = 12
		if y := l.y + l.h/2 + 4; y-line >= next && l.h >= 5 {
			d.Labels = append(d.Labels, drawnLabel{number(y), shortID(shards[l.of].Shard)})
			next = y
		}
	}
	d.Axis = axis(from, to)
	d.Scale, d.States, d.About = by.scale(), by == nil, "The colours are states:"
	if by != nil {
		d.About = by.about
	}
	d.boxes, d.from, d.to = p.boxes, from, to
	return d
}

func rectangle(path *strings.Builder, x, y, w, h float64) {
	if w > 0 {
		fmt.Fprintf(path, "M%s %sh%sv%sh-%sz", number(x), number(y), number(w), number(h), number(w))
	}
}

// titleOf describes a rectangle in one line. A rectangle of several shards is described by its
// worst shard.
func titleOf(shards []shardInfo, of []int) string {
	first := &shards[of[0]]
	text := "Shard " + shortID(first.Shard) + ", " + first.Word() + ": " + first.Sentence
	if first.Worker != "" {
		text += ", owned by " + first.Worker
	}
	if first.Load > 0 && first.Held {
		text += "; brings " + first.Rate
	}
	if !first.Opened.IsZero() {
		text += "; opened " + first.Opened.UTC().Format("15:04:05")
	}
	if !first.Closed.IsZero() {
		text += "; closed " + first.Closed.UTC().Format("15:04:05")
	}
	if line := first.lineage(); line != "" {
		text += "; " + line
	}
	if n := len(of) - 1; n > 0 {
		text += fmt.Sprintf("; with %d neighbours in the same state or a better one", n)
	}
	return text
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 32) }

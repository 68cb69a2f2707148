package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
)

// noteWriter writes a log, one line per call. It removes passwords, which an error may quote.
type noteWriter struct{ to io.Writer }

func (w noteWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.to, redact.Text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// SpeakThrough makes a terminal write its further messages to a log.
func SpeakThrough(t Terminal, log slog.Handler, app, worker string) {
	t.speech.log.Store(slog.New(log).With("app", app, "worker", worker))
}

// LogFormat is the value of the flag --log.
type LogFormat string

const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

func (f *LogFormat) String() string { return string(*f) }
func (f *LogFormat) Type() string   { return "text|json" }

func (f *LogFormat) Set(s string) error {
	if s != string(LogText) && s != string(LogJSON) {
		return fmt.Errorf("%.40q is not a log format: use text or json", s)
	}
	*f = LogFormat(s)
	return nil
}

// Handler returns a log handler that writes to w, at level info and above. It replaces each error
// by one sentence that explains it. It replaces options of package weir by the flags that set them.
func (f LogFormat) Handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(explain.Error(v))
		case time.Duration:
			a.Value = slog.StringValue(v.String())
		}
		return a
	}}
	if f == LogJSON {
		return inFlags{slog.NewJSONHandler(noteWriter{w}, options)}
	}
	return inFlags{slog.NewTextHandler(noteWriter{w}, options)}
}

// inFlags is a log handler that replaces names of options by the flags that set them.
type inFlags struct{ slog.Handler }

func (h inFlags) Handle(ctx context.Context, r slog.Record) error {
	r.Message = explain.TextInFlags(r.Message)
	return h.Handler.Handle(ctx, r)
}

func (h inFlags) WithAttrs(attrs []slog.Attr) slog.Handler {
	return inFlags{h.Handler.WithAttrs(attrs)}
}
func (h inFlags) WithGroup(name string) slog.Handler { return inFlags{h.Handler.WithGroup(name)} }

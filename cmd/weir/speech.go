package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/redact"
)

// speech is how a command speaks on standard error: in plain lines, or in a log once it works for
// long.
type speech struct{ log atomic.Pointer[slog.Logger] }

// note tells the person something that is neither result nor error.
func (t terminal) note(format string, args ...any) { t.say(slog.LevelInfo, format, args...) }

// say is note with a level, which a log has.
func (t terminal) say(level slog.Level, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.speech != nil {
		if log := t.speech.log.Load(); log != nil {
			log.Log(context.Background(), level, text)
			return
		}
	}
	fmt.Fprint(t.err, escape(redact.Text("weir: "+text+"\n"), "\n\t"))
}

// noteWriter writes a log whose lines come one at a time, without the passwords that an error may
// quote.
type noteWriter struct{ to io.Writer }

func (w noteWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.to, redact.Text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// speakThrough has a terminal speak through a log from now on.
func speakThrough(t terminal, log slog.Handler, app, worker string) {
	t.speech.log.Store(slog.New(log).With("app", app, "worker", worker))
}

// logFormat is --log.
type logFormat string

const (
	logText logFormat = "text"
	logJSON logFormat = "json"
)

func (f *logFormat) String() string { return string(*f) }
func (f *logFormat) Type() string   { return "text|json" }

func (f *logFormat) Set(s string) error {
	if s != string(logText) && s != string(logJSON) {
		return fmt.Errorf("%.40q is no format of a log: use text or json", s)
	}
	*f = logFormat(s)
	return nil
}

// handler is a log on w, of all levels from info. Errors are told in a sentence, options by their
// flags.
func (f logFormat) handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(explain(v))
		case time.Duration:
			a.Value = slog.StringValue(v.String())
		}
		return a
	}}
	if f == logJSON {
		return inFlags{slog.NewJSONHandler(noteWriter{w}, options)}
	}
	return inFlags{slog.NewTextHandler(noteWriter{w}, options)}
}

// inFlags is a log whose messages have the options of package weir in the words of the command
// line.
type inFlags struct{ slog.Handler }

func (h inFlags) Handle(ctx context.Context, r slog.Record) error {
	r.Message = inFlagWords(r.Message)
	return h.Handler.Handle(ctx, r)
}

func (h inFlags) WithAttrs(attrs []slog.Attr) slog.Handler {
	return inFlags{h.Handler.WithAttrs(attrs)}
}
func (h inFlags) WithGroup(name string) slog.Handler { return inFlags{h.Handler.WithGroup(name)} }

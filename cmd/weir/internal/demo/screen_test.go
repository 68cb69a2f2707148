package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

func examplePicture(t *testing.T) picture {
	p := picture{
		at: 83 * time.Second, flights: 20000, put: 12345, handled: 12300, distinct: 12290, endpoint: "http://127.0.0.1:4567",
		shards: shards(t, "shardId-000000000000 - finished closed", "shardId-000000000001 w1", "shardId-000000000002 w2 moving",
			"shardId-000000000003 -", "shardId-000000000004 - closed <shardId-000000000000,shardId-000000000001"),
		workers: crew("w1*", "w2", "w3 killed", "w4 stopped", "w5 starting"),
		steps: []step{{text: "start", begun: true, done: true, found: "all read"}, {text: "split", begun: true}, {text: "merge"},
			{text: "a step whose name is so long that it does not fit beside what was found", begun: true, done: true, found: "found"}},
	}
	p.shards = append(p.shards, shards(t, "shardId-000000000005 w3")...)
	p.shards[1].rate, p.shards[1].put = 83.4, 20
	return p
}

func TestScreenShowsEverything(t *testing.T) {
	text := ansi.Strip(screen(examplePicture(t), 80, 24))
	for _, want := range []string{"20,000 real flights", "1:23", "read to its end", "83/s", "w2 →", "nobody", "w3 ✗", "0+1", "★ w1", "✗ w3  killed",
		"○ w4  stopped", "◌ w5  starting", "✓ start", "all read", "▸ split …", "put 12,345", "waiting 55", "twice 10", "61%"} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen lacks %q:\n%s", want, text)
		}
	}
}

func TestScreenFits(t *testing.T) {
	for _, c := range []struct{ width, height, shards, workers int }{
		{80, 24, 0, 0}, {80, 24, 3, 3}, {80, 24, 9, 4}, {80, 24, 19, 4}, {80, 24, 40, 6}, {200, 60, 19, 4}, {10, 5, 5, 4}, {100, 30, 9, 4},
	} {
		p := examplePicture(t)
		var lines, names []string
		for i := range c.shards {
			flags := ""
			if i%3 == 0 {
				flags = " finished closed"
			}
			lines = append(lines, fmt.Sprintf("shardId-%012d w%d%s", i, i%4, flags))
		}
		for i := range c.workers {
			names = append(names, fmt.Sprint("w", i))
		}
		p.shards, p.workers = shards(t, lines...), crew(names...)
		for len(p.steps) < 8 {
			p.steps = append(p.steps, step{text: "another step"})
		}
		rows := strings.Split(screen(p, c.width, c.height), "\n")
		if limit := max(c.height, LeastHeight); len(rows) > limit {
			t.Errorf("%+v: %d rows", c, len(rows))
		}
		for _, row := range rows {
			if w := lipgloss.Width(row); w > max(c.width, LeastWidth) {
				t.Errorf("%+v: a row of %d columns: %q", c, w, ansi.Strip(row))
			}
		}
		if open := len(p.open()); open > 0 && open < 9 {
			for _, s := range p.open() {
				if !strings.Contains(ansi.Strip(strings.Join(rows, "\n")), "\n   "+s.short()+" ") {
					t.Errorf("%+v: open shard %s is not shown", c, s.short())
				}
			}
		}
	}
}

func TestPlain(t *testing.T) {
	var out strings.Builder
	a := &Plain{Out: &out}
	p := examplePicture(t)
	for _, at := range []time.Duration{0, 100 * time.Millisecond, 4900 * time.Millisecond, 5 * time.Second, 6 * time.Second} {
		p.at = at
		a.Picture(p)
	}
	a.Event(1500*time.Millisecond, "something happens")
	if got := strings.Count(out.String(), "put 12,345"); got != 2 {
		t.Errorf("%d lines of state in six seconds, want 2:\n%s", got, out.String())
	}
	if !strings.Contains(out.String(), "   1.5 s  something happens\n") || !strings.Contains(out.String(), "w1* holds 0") {
		t.Errorf("it said %s", out.String())
	}
}

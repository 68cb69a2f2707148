package migrate

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/records"
)

// columns is the width of a plan on the screen.
const columns = 80

// stepInfo describes the change of one lease in the output.
type stepInfo struct {
	Stream string `json:"stream"`
	Shard  string `json:"shard"`
	Was    string `json:"was,omitempty"`  // of the side that is read, "" if it has no lease
	Have   string `json:"have,omitempty"` // of the side that is written, "" if it has no lease yet
	To     string `json:"to"`
	Why    string `json:"why,omitempty"`
	State  string `json:"state"` // planned, unchanged, done, changed meanwhile, not done
}

// report is the result of a migration.
type report struct {
	App   string     `json:"app"`
	Table string     `json:"table"`
	Steps []stepInfo `json:"steps"`
	Notes []string   `json:"notes,omitempty"`
	// Verified is true if the command read the result again and it was as planned.
	Verified bool `json:"verified"`
	was, to  string
}

// write shows the plan in lines of at most 80 columns. A reason that does not fit continues in
// further lines. Long sequence numbers are shortened; -o json has them in full.
func (r *report) write(w io.Writer) error {
	var b strings.Builder
	stream := ""
	wide := [3]int{len("SHARD"), len(r.was), len(r.to)}
	var rows [][4]string
	for _, s := range r.Steps {
		to := brief(s.To)
		if s.State == "unchanged" {
			to = "stays"
		}
		row := [4]string{brief(records.ShortID(s.Shard)), brief(s.Was), to, cli.Visible(s.Why)}
		if row[1] == "" {
			row[1] = "no lease"
		}
		for i := range wide {
			wide[i] = max(wide[i], utf8.RuneCountInString(row[i]))
		}
		rows = append(rows, row)
	}
	head := [4]string{"SHARD", r.was, r.to, ""}
	for i, s := range r.Steps {
		if s.Stream != stream {
			stream = s.Stream
			_ = cli.Textf(&b, "Stream %s\n", stream)
			line(&b, wide, head)
		}
		line(&b, wide, rows[i])
	}
	for _, n := range r.Notes {
		for i, part := range wrap(cli.Visible(n), columns-2) {
			b.WriteString([]string{"! ", "  "}[min(i, 1)] + part + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line writes a row of the plan.
func line(b *strings.Builder, wide [3]int, row [4]string) {
	indent := 0
	var cells string
	for i := range wide {
		cells += row[i] + strings.Repeat(" ", wide[i]-utf8.RuneCountInString(row[i])+2)
		indent += wide[i] + 2
	}
	for i, part := range wrap(row[3], max(columns-indent, 20)) {
		if i > 0 {
			cells = strings.Repeat(" ", indent)
		}
		b.WriteString(strings.TrimRight(cells+part, " ") + "\n")
	}
}

// wrap breaks a text at spaces. It returns at least one line.
func wrap(s string, most int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= most:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	for i, l := range lines { // a word that is too long by itself
		if runes := []rune(l); len(runes) > most {
			lines[i] = string(runes[:most-1]) + "…"
		}
	}
	return lines
}

// brief shortens a long number to its first and last digits.
func brief(s string) string {
	s = cli.Visible(s)
	number, rest := s, ""
	if i := strings.IndexAny(s, "+/"); i > 0 {
		number, rest = s[:i], s[i:]
	}
	if strings.HasPrefix(s, "2") && strings.Contains(s, "T") { // a time, to the second
		return strings.Replace(s, ".000Z", "Z", 1)
	}
	if len(number) > 18 {
		number = number[:4] + "…" + number[len(number)-8:]
	}
	return number + rest
}

// count returns the number of steps that have a state.
func (r *report) count(state string) (n int) {
	for _, s := range r.Steps {
		if s.State == state {
			n++
		}
	}
	return n
}

func leases(n int) string { return cli.Count(n, "lease") }

// nothing returns the error for a table without leases.
func nothing(table string) error {
	return fmt.Errorf("table %s has no leases of the KCL: check --table", table)
}

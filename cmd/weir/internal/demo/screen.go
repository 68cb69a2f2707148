package demo

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/shard"
)

// LeastWidth and LeastHeight are the size of the smallest terminal for the picture.
const (
	LeastWidth  = 80
	LeastHeight = 24
)

var (
	dim    = lipgloss.NewStyle().Faint(true)
	strong = lipgloss.NewStyle().Bold(true)
	good   = lipgloss.NewStyle().Foreground(lipgloss.BrightGreen)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.BrightRed)

	workerColors = []color.Color{lipgloss.BrightCyan, lipgloss.BrightYellow, lipgloss.BrightMagenta, lipgloss.BrightGreen,
		lipgloss.BrightBlue, lipgloss.BrightWhite}
)

// screen draws a picture for a terminal of the given size. Its result depends only on its
// arguments.
func screen(p picture, width, height int) string {
	width, height = max(width, LeastWidth), max(height, LeastHeight)
	top := []string{
		title(p, width),
		pageLine(p),
		" " + hashSpace(p, width-2),
		dim.Render(fmt.Sprintf("   %-6s%-8s%-*s  %-8s%7s%8s%9s", "shard", "from", rangeWidth(width), "hash range", "owner", "epoch", "waiting", "rate")),
	}
	bottom := append([]string{""}, beside(workerLines(p), stepLines(p, width-31), 30)...)
	bottom = append(bottom, "", totals(p, width))
	rows := shardLines(p, width, height-len(top)-len(bottom))
	return strings.Join(slices.Concat(top, rows, bottom), "\n")
}

func title(p picture, width int) string {
	left := strong.Render(" weir demo") + dim.Render(fmt.Sprintf("  %s real flights through %s", figures.Count(p.flights), p.endpoint))
	clock := fmt.Sprintf("%d:%02d ", int(p.at.Minutes()), int(p.at.Seconds())%60)
	return left + strings.Repeat(" ", max(1, width-lipgloss.Width(left)-len(clock))) + clock
}

// pageLine returns a line with the address of the page.
func pageLine(p picture) string {
	if p.page == "" {
		return ""
	}
	return dim.Render(" in a browser: " + p.page)
}

// hashSpace draws the space of hash keys as a bar. Each part has the colour of the worker that owns
// it.
func hashSpace(p picture, cells int) string {
	var b strings.Builder
	for i := range cells {
		at := (float64(i) + 0.5) / float64(cells)
		cell := dim.Render("░")
		for _, s := range p.open() {
			if from, to := span(s.hash); from <= at && at < to {
				cell = p.paint(s.owner, "█")
				if s.owner == "" {
					cell = bad.Render("░")
					continue
				}
				if math.Floor(from*float64(cells)) == float64(i) && i > 0 {
					cell = p.paint(s.owner, "▐")
				}
			}
		}
		b.WriteString(cell)
	}
	return b.String()
}

// span returns the ends of a hash range as fractions of the key space, from 0 to 1.
func span(r shard.HashRange) (from, to float64) {
	part := func(k shard.HashKey) float64 { return (float64(k.Hi) + float64(k.Lo)/(1<<64)) / (1 << 64) }
	return part(r.Start), part(r.End)
}

func rangeWidth(width int) int { return max(20, min(40, width-56)) }

// shardLines returns at most space lines, one for each shard. If not all fit, the open shards come
// first.
func shardLines(p picture, width, space int) []string {
	rows := slices.Clone(p.shards)
	left := 0
	if len(rows) > space {
		slices.SortStableFunc(rows, func(a, b shardState) int { return cmp.Compare(rank(a), rank(b)) })
		left = len(rows) - (space - 1)
		rows = rows[:space-1]
		slices.SortStableFunc(rows, func(a, b shardState) int { return cmp.Compare(a.id, b.id) })
	}
	var lines []string
	for _, s := range rows {
		lines = append(lines, shardLine(p, s, rangeWidth(width)))
	}
	if left > 0 {
		lines = append(lines, dim.Render(fmt.Sprintf("   and %d more", left)))
	}
	return lines
}

func rank(s shardState) int {
	switch {
	case s.finished:
		return 2
	case s.closed:
		return 1
	}
	return 0
}

func shardLine(p picture, s shardState, cells int) string {
	var from []string
	for _, id := range s.parents {
		from = append(from, shortID(id))
	}
	start, end := span(s.hash)
	var bar strings.Builder
	for i := range cells {
		if at := (float64(i) + 0.5) / float64(cells); start <= at && at < end {
			bar.WriteString("█")
		} else {
			bar.WriteString("·")
		}
	}
	head := fmt.Sprintf("   %-6s%-8s", s.short(), strings.Join(from, "+"))
	if s.finished {
		return dim.Render(fmt.Sprintf("%s%s  read to its end", head, strings.ReplaceAll(bar.String(), "█", "▒")))
	}
	owner := fmt.Sprintf("%-8s", s.owner)
	switch {
	case s.owner == "" && s.closed:
		owner = dim.Render("-       ")
	case s.owner == "":
		owner = bad.Render("nobody  ")
	case p.worker(s.owner).life == killed:
		owner = fmt.Sprintf("%-8s", s.owner+" ✗")
	case s.moving:
		owner = fmt.Sprintf("%-8s", s.owner+" →")
	}
	rate := "-"
	if s.rate >= 0.5 {
		rate = fmt.Sprintf("%.0f/s", s.rate)
	}
	return head + p.paint(s.owner, bar.String()) + "  " + p.paint(s.owner, owner) + fmt.Sprintf("%7d%8d%9s", s.epoch, s.lag(), rate)
}

// paint colours a text with the colour of a worker. If the worker is dead, it uses the colour of
// errors.
func (p picture) paint(worker, text string) string {
	for i, w := range p.workers {
		if w.name == worker {
			if w.life == killed {
				return bad.Render(strings.ReplaceAll(text, "█", "░"))
			}
			return lipgloss.NewStyle().Foreground(workerColors[i%len(workerColors)]).Render(text)
		}
	}
	return text
}

func workerLines(p picture) []string {
	lines := []string{dim.Render("   workers")}
	for _, w := range p.workers {
		mark, state := "●", fmt.Sprintf("%d %s", w.leases, cli.Plural(w.leases, "shard", "shards"))
		switch w.life {
		case killed:
			mark, state = "✗", "killed"
		case stopped:
			mark, state = "○", "stopped"
		case stopping:
			mark, state = "◌", "stopping"
		case starting:
			mark, state = "◌", "starting"
		case living:
			if w.leads {
				mark, state = "★", state+", leads"
			}
		}
		text := fmt.Sprintf("   %s %-4s%s", mark, w.name, state)
		if w.life == killed || w.life == stopped {
			lines = append(lines, dim.Render(text))
			continue
		}
		lines = append(lines, p.paint(w.name, text))
	}
	return lines
}

func stepLines(p picture, width int) []string {
	var lines []string
	for _, s := range p.steps {
		switch {
		case s.done:
			text := "✓ " + s.text
			lines = append(lines, good.Render("✓")+fit(strings.TrimPrefix(text, "✓"), width-1-2-len(s.found))+"  "+dim.Render(s.found))
		case s.begun:
			lines = append(lines, strong.Render("▸ "+s.text+" …"))
		default:
			lines = append(lines, dim.Render("  "+s.text))
		}
	}
	return lines
}

// fit cuts a text to the given width.
func fit(s string, width int) string {
	if r := []rune(s); len(r) > width && width > 1 {
		return string(r[:width-1]) + "…"
	}
	return s
}

// beside joins two blocks of lines side by side.
func beside(left, right []string, leftWidth int) []string {
	lines := make([]string, max(len(left), len(right)))
	for i := range lines {
		var l string
		if i < len(left) {
			l = left[i]
		}
		lines[i] = l
		if i < len(right) {
			lines[i] += strings.Repeat(" ", max(1, leftWidth-lipgloss.Width(l))) + right[i]
		}
	}
	return lines
}

func totals(p picture, width int) string {
	text := fmt.Sprintf(" put %s · handled %s · waiting %s · twice %s  ", figures.Count(p.put), figures.Count(p.distinct), figures.Count(max(0, p.put-p.distinct)),
		figures.Count(p.handled-p.distinct))
	done := 0.0
	if p.flights > 0 {
		done = float64(p.distinct) / float64(p.flights)
	}
	cells := max(5, width-lipgloss.Width(text)-6)
	full := int(done * float64(cells))
	return text + good.Render(strings.Repeat("━", full)) + dim.Render(strings.Repeat("━", cells-full)) + fmt.Sprintf(" %3.0f%%", math.Floor(100*done))
}

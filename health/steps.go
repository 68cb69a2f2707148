package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// weir returns a command line of the weir command for the application.
func (c *conclusion) weir(command string) string {
	return "weir " + command + " --app " + quote(c.App)
}

// longerRetention returns the step that keeps records from expiring: a week, or the most that
// Kinesis allows.
func (c *conclusion) longerRetention() Step {
	const week, most = 7 * 24, 365 * 24 // hours
	hours := week
	if c.worst.Left >= 0 && c.worst.Left+c.worst.Lag() >= week*time.Hour {
		hours = most
	}
	return Step{
		"Lengthen the retention of the stream at once",
		fmt.Sprintf("aws kinesis increase-stream-retention-period --stream-name %s "+
			"--retention-period-hours %d", quote(c.worst.Stream), hours),
	}
}

// resume returns a step for each paused stream, or one for the application.
func (c *conclusion) resume(all []*ShardFacts) []Step {
	if c.PausedApp {
		return []Step{{"Resume the application when it may continue", c.weir("group resume")}}
	}
	var steps []Step
	var streams []string
	for _, s := range all {
		if !slices.Contains(streams, s.Stream) {
			streams = append(streams, s.Stream)
		}
	}
	slices.Sort(streams)
	for _, stream := range streams {
		steps = append(steps, Step{"Resume the stream " + stream + " when it may continue",
			c.weir("group resume") + " --stream " + quote(stream)})
	}
	return steps
}

// plain matches words that a shell does not change.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.:/@%+-]+$`)

// quote returns a word as a shell needs it.
func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plural returns a number with a noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size formats a number of bytes. Workers report loads in steps of a factor of 1.4, so two digits
// are enough.
func size(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	unit := 0
	for bytes >= 1000 && unit < len(units)-1 {
		bytes /= 1024
		unit++
	}
	if unit > 0 && bytes < 9.95 {
		return fmt.Sprintf("%.1f %s", bytes, units[unit])
	}
	return fmt.Sprintf("%.0f %s", bytes, units[unit])
}

// hotShards returns the hot shards, each with the median load of the other shards. The median is
// negative if it is unknown.
func hotShards(open []*ShardFacts) map[*ShardFacts]float64 {
	behind := 0
	var loads []float64
	for _, s := range open {
		if s.State >= Behind {
			behind++
		}
		if s.Load >= 0 {
			loads = append(loads, s.Load)
		}
	}
	slices.SortFunc(loads, cmp.Compare[float64])
	hot := map[*ShardFacts]float64{}
	for _, s := range open {
		if s.State < Behind || s.State == Stalled { // a hot shard handles records
			continue
		}
		median := medianOfOthers(loads, s.Load)
		presses := s.State == FallingBehind || s.Load >= hotLoad
		switch {
		case median >= 0 && s.Load > 0 && presses && median < s.Load/hotTimes:
			hot[s] = median
		case behind == 1 && presses && len(open) > 1 && s.Recent.Minutes > 0 && s.Recent.Busy >= hotBusy:
			hot[s] = median
		}
	}
	return hot
}

// medianOfOthers returns the median of sorted loads without one of them, which is negative if it is
// not among the loads. It returns -1 if no load is left.
func medianOfOthers(loads []float64, without float64) float64 {
	skip, n := len(loads), len(loads)
	if without >= 0 {
		skip, _ = slices.BinarySearch(loads, without)
		n--
	}
	switch at := n / 2; {
	case n <= 0:
		return -1
	case at >= skip:
		return loads[at+1]
	default:
		return loads[at]
	}
}

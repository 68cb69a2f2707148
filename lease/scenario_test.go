package lease_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/*.txt")

// defaultStream is the stream of leases that a scenario writes without a stream.
const defaultStream = "orders"

// TestScenarios runs testdata/*.txt, see testdata/README.md. After an intended change, run it with
// -update and review the difference.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 15 {
		t.Fatalf("found %d scenarios in testdata, there were more", len(files))
	}
	titles := map[string]string{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			title, _, _ := strings.Cut(string(text), "\n")
			if !strings.HasPrefix(title, "# ") || !strings.HasSuffix(title, ".") {
				t.Errorf("%s does not begin with a sentence such as %q", file, "# A worker dies.")
			}
			if other := titles[title]; other != "" {
				t.Errorf("%s has the title of %s", file, other)
			}
			titles[title] = file

			got, err := runScenario(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if got == string(text) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s does not say what happens.\n%s", file, firstDifference(string(text), got))
		})
	}
}

// firstDifference returns the first block that differs between two scenario texts.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n\n"), strings.Split(got, "\n\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("want:\n%s\n\ngot:\n%s", w[i], g[i])
		}
	}
	return "the number of blocks differs"
}

// runScenario executes the commands of a scenario. It returns the scenario's text with the actual
// output. A block consists of lines with commands or comments, "----", and the output. It ends with
// an empty line.
func runScenario(text string) (string, error) {
	s := &scenario{model: newModel()}
	var b strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		var out strings.Builder
		commands := 0
		for line := range strings.Lines(block) {
			line = strings.TrimRight(line, "\n")
			if line == "----" {
				break
			}
			b.WriteString(line + "\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			commands++
			if err := s.run(&out, strings.Fields(line)); err != nil {
				return "", fmt.Errorf("%q: %w", line, err)
			}
		}
		if commands > 0 {
			if out.Len() == 0 {
				out.WriteString("ok\n")
			}
			b.WriteString("----\n" + out.String())
		}
	}
	return b.String(), nil
}

type scenario struct {
	*model
	planned []lease.Action
}

func (s *scenario) run(out *strings.Builder, words []string) error {
	args, options, err := parseCommand(words[1:])
	if err != nil {
		return err
	}
	keys, err := parseKeys(args)
	if err != nil {
		return err
	}
	switch words[0] {
	case "worker":
		return s.addWorker(args, options)
	case "lease", "leases":
		return s.addLeases(keys, options)
	case "limit":
		s.limits.MovesInFlight, err = strconv.Atoi(args[0])
		return err
	case "plan":
		s.planned = s.plan()
		for _, a := range s.planned {
			fmt.Fprintln(out, a)
		}
		if len(s.planned) == 0 {
			out.WriteString("nothing to do\n")
		}
		return nil
	case "apply":
		return s.applyPlan(out, args)
	case "settle":
		return s.settle(out)
	case "explain":
		for _, why := range lease.Explain(s.view(nil), s.facts, s.limits) {
			fmt.Fprintln(out, why)
		}
		return nil
	case "reads":
		if len(args) < 1 || s.workers[args[0]] == nil {
			return fmt.Errorf("wants a worker and streams")
		}
		s.workers[args[0]].Streams = lease.StreamsOf(args[1:], nil)
		return nil
	case "leader-reads":
		s.facts.Streams = lease.StreamsOf(args, nil)
		return nil
	case "pause":
		s.paused = slices.Sorted(slices.Values(append(s.paused, args...)))
		return nil
	case "pause-all":
		s.paused = append(s.paused, "")
		return nil
	case "resume":
		s.paused = nil
		return nil
	case "unknown":
		fmt.Fprintln(out, "parents without a lease:", lease.Unknown(s.view(nil).Leases, s.facts.Gone))
		return nil
	case "show":
		out.WriteString(s.String())
		return nil
	case "heartbeat", "dead", "out-of-date", "leaving", "leave", "drain", "undrain", "cut-off", "restored":
		if len(args) != 1 || s.workers[args[0]] == nil {
			return fmt.Errorf("wants one worker")
		}
		s.happens(words[0], args[0])
		return nil
	case "hand-over":
		if len(keys) == 0 {
			s.handOver()
			return nil
		}
	}
	for _, k := range keys {
		if err := s.happensTo(words[0], k, options); err != nil {
			return err
		}
	}
	return nil
}

// happens executes an event of a worker, or an observation of the leader about the worker.
func (s *scenario) happens(what, session string) {
	w := s.workers[session]
	switch what {
	case "heartbeat":
		w.Heartbeats++
	case "dead":
		s.facts.Dead[session] = w.Heartbeats
	case "out-of-date":
		s.facts.OutOfDate[session] = true
	case "leaving":
		w.Leaving = true
	case "leave":
		s.leave(session)
	case "drain", "undrain":
		w.Drain = what == "drain"
	case "cut-off":
		w.Troubles = []lease.Trouble{{State: lease.CutOff}}
	case "restored":
		w.Troubles = nil
	}
}

// happensTo executes an event of leases, or an observation of the leader about them.
func (s *scenario) happensTo(what string, k lease.Key, options map[string]string) error {
	l := s.leases[k]
	if what == "gone" {
		s.facts.Gone[k] = true
		return nil
	}
	if l == nil {
		return fmt.Errorf("there is no lease %s", k)
	}
	switch what {
	case "hand-over", "release":
		s.release(k)
	case "stall":
		s.stall(k)
	case "move-to-end":
		if l.Owner != "" {
			l.Owner, l.Heir, l.Revoked = "", "", l.Owner
		}
		l.Position = shard.End
		l.Epoch++
	case "cooling":
		s.facts.Cooling[k] = l.Epoch
	case "recent", "settled":
		if s.facts.Recent[k] = l.Epoch; what == "settled" {
			delete(s.facts.Recent, k)
		}
	case "acknowledge":
		l.Revoked = ""
	case "overdue":
		s.facts.Overdue[k] = l.Epoch
	case "ripe":
		s.facts.Ripe[k] = l.Epoch
	case "trim":
		delete(s.leases, k)
	case "finish":
		var children []lease.Lease
		for _, id := range splitList(options["into"]) {
			parents := splitList(options["parents"])
			if len(parents) == 0 {
				parents = []string{k.Shard}
			}
			children = append(children, lease.Lease{Key: lease.Key{Stream: k.Stream, Shard: id}, Parents: parents})
		}
		s.finish(k, children...)
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

func (s *scenario) addWorker(names []string, options map[string]string) error {
	for _, name := range names {
		w := &lease.Worker{Session: name, Name: name, Heartbeats: 10}
		for key, value := range options {
			var err error
			switch key {
			case "weight":
				w.Weight, err = strconv.ParseFloat(value, 64)
			case "cap":
				w.MaxLeases, err = strconv.Atoi(value)
			case "reads":
				w.Streams = lease.StreamsOf(splitList(value), nil)
			default:
				err = fmt.Errorf("a worker has no %q", key)
			}
			if err != nil {
				return err
			}
		}
		s.workers[name] = w
	}
	return nil
}

func (s *scenario) addLeases(keys []lease.Key, options map[string]string) error {
	for _, k := range keys {
		l := &lease.Lease{Key: k, Epoch: 1, Position: shard.Oldest}
		for key, value := range options {
			var err error
			switch key {
			case "epoch":
				l.Epoch, err = strconv.ParseUint(value, 10, 64)
			case "owner":
				l.Owner = value
			case "heir":
				l.Heir = value
			case "revoked":
				l.Revoked = value
			case "last":
				l.Last = value
			case "shunned":
				l.Shunned, l.Last = value, value
			case "load":
				var bytes float64
				bytes, err = strconv.ParseFloat(value, 64)
				l.Load = lease.LoadOf(bytes)
			case "parents":
				l.Parents = splitList(value)
			case "at":
				l.Position, err = shard.Parse(value)
			default:
				err = fmt.Errorf("a lease has no %q", key)
			}
			if err != nil {
				return err
			}
		}
		if l.Last == "" {
			l.Last = l.Owner + l.Revoked // one of them is empty
		}
		s.leases[k] = l
	}
	return nil
}

// applyPlan executes the last plan, or its first actions, and prints the resulting state.
func (s *scenario) applyPlan(out *strings.Builder, args []string) error {
	n := len(s.planned)
	if len(args) > 0 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n > len(s.planned) {
			return fmt.Errorf("wants a number up to %d", len(s.planned))
		}
	}
	for _, a := range s.planned[:n] {
		if !s.apply(a) {
			fmt.Fprintln(out, "refused:", a)
		}
	}
	out.WriteString(s.String())
	return nil
}

// settle plans, applies the plan, and lets the owners hand leases over, until nothing is left to
// do.
func (s *scenario) settle(out *strings.Builder) error {
	for round := range 20 {
		planned := s.plan()
		if len(planned) == 0 {
			out.WriteString(s.String())
			return nil
		}
		for _, a := range planned {
			fmt.Fprintf(out, "%d. %s\n", round+1, a)
			s.apply(a)
		}
		s.handOver()
	}
	return fmt.Errorf("no end in 20 rounds")
}

// parseCommand separates arguments from options of the form key=value.
func parseCommand(words []string) (args []string, options map[string]string, err error) {
	options = map[string]string{}
	for _, w := range words {
		key, value, isOption := strings.Cut(w, "=")
		if !isOption {
			args = append(args, w)
		} else if _, twice := options[key]; twice {
			return nil, nil, fmt.Errorf("%s twice", key)
		} else {
			options[key] = value
		}
	}
	return args, options, nil
}

// parseKeys parses shard IDs such as "3", "logs/3" and "1..6".
func parseKeys(words []string) ([]lease.Key, error) {
	var keys []lease.Key
	for _, w := range words {
		stream, id, named := strings.Cut(w, "/")
		if !named {
			stream, id = defaultStream, w
		}
		first, last, isRange := strings.Cut(id, "..")
		if !isRange {
			keys = append(keys, lease.Key{Stream: stream, Shard: id})
			continue
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || len(first) != len(last) {
			return nil, fmt.Errorf("range %q wants two numbers with the same number of digits", w)
		}
		for n := range to - from + 1 {
			keys = append(keys, lease.Key{Stream: stream, Shard: fmt.Sprintf("%0*d", len(first), from+n)})
		}
	}
	return keys, nil
}

func splitList(s string) []string {
	return slices.DeleteFunc(strings.Split(s, ","), func(p string) bool { return p == "" })
}

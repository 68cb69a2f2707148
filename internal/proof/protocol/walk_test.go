package protocol

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/longform"
)

var seed = flag.Uint64("seed", 0, "of the first random walk; 0 takes another one each time, and prints it")

// walked returns a model that is larger than those that are searched completely. Its faults except
// drift are unlimited. Drift becomes possible again after enough ticks, so that clock rates stay
// within their limits.
func walked(bug Bug) *Model {
	return New(Model{
		Workers: 4, Sessions: 6, Leases: 3, Failover: 4, Validity: 2, OwnWatch: true, Bug: bug,
		Faults: Faults{
			Crashes: unlimited, Lost: unlimited, Late: unlimited, Drift: 1,
			Handoffs: unlimited, Revokes: unlimited, Resigns: unlimited, Leaves: unlimited,
		},
	})
}

// sorts is the number of kinds of steps that a walk distinguishes.
const sorts = (int(stepFast) + 1) * (int(callLeave) + 1)

func sortOf(st step) int { return int(st.kind)*(int(callLeave)+1) + int(st.call.kind) }

// habits chooses the relative frequency of each kind of step. It differs from walk to walk, because
// states that are rare with one mix are common with another.
func habits(r *rand.Rand) (weights [sorts]int) {
	for k := range weights {
		weights[k] = 1 << (2 * r.IntN(3))
		switch kind := stepKind(k / (int(callLeave) + 1)); {
		case kind.fault() && r.IntN(2) == 0:
			weights[k] = 0
		case kind == stepBeat || kind == stepAnswer:
			weights[k] *= 16
		case kind == stepCall || kind == stepTick:
			weights[k] *= 4
		}
	}
	return weights
}

// walk takes random steps. It returns the broken promise and the last steps before it, or the
// number of states in which all leases were read.
func (m *Model) walk(r *rand.Rand, steps int) (broken string, last []string, served int) {
	s, weights := m.initial(), habits(r)
	quiet := 0 // ticks since the last drift
	for range steps {
		var (
			found  [sorts]int
			picked [sorts]state
			took   [sorts]step
		)
		m.steps(&s, func(st step, t *state) {
			k := sortOf(st)
			if found[k]++; r.IntN(found[k]) == 0 {
				picked[k], took[k] = *t, st
			}
		})
		total := 0
		for k, n := range found {
			if n > 0 {
				total += weights[k]
			}
		}
		if total == 0 {
			break // the weights of this walk exclude the remaining steps
		}
		k, left := 0, r.IntN(total)
		for ; ; k++ {
			if found[k] == 0 {
				continue
			}
			if left -= weights[k]; left < 0 {
				break
			}
		}
		before := s
		st := took[k]
		s = picked[k]
		last = append(last[max(0, len(last)-40):], m.tell(&before, st)+"   "+m.describe(&s))
		switch st.kind {
		case stepTick:
			if quiet++; quiet > 2*int(m.Failover) {
				s.left.Drift = 1
			}
		case stepTickSlow, stepFast:
			quiet = 0
		}
		if broken = m.broken(&s); broken == "" {
			broken = m.wrong(&before, st, &s)
		}
		if broken != "" {
			return broken, last, served
		}
		if m.served(&s) {
			served++
		}
	}
	return "", nil, served
}

func TestRandomWalksOfLargerSizes(t *testing.T) {
	walks := 20
	switch {
	case *full:
		walks = 1000
	case longform.On():
		walks = 150
	case testing.Short():
		walks = 10
	}
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("4 workers, 3 leases; walk n has the seed %d+n (-seed repeats them)", first)
	m, served, began := walked(NoBug), 0, time.Now()
	for n := range walks {
		at := first + uint64(n)
		broken, last, good := m.walk(rand.New(rand.NewPCG(at, 0)), 2000)
		if broken != "" {
			t.Fatalf("seed %d: %s; the last steps:\n%s", at, broken, strings.Join(last, "\n"))
		}
		served += good
	}
	if served == 0 && walks >= 100 {
		t.Error("no walk came to a state in which all leases are read")
	}
	t.Logf("%d walks of 2000 steps in %v; in %d states all leases were read", walks, time.Since(began).Round(10*time.Millisecond), served)
}

// TestWalksFindPlantedBugs checks that walks also find planted bugs.
func TestWalksFindPlantedBugs(t *testing.T) {
	for bug, name := range map[Bug]string{
		ValidityFromTheAnswer: "validity from the answer", AssignmentOfRevoked: "assignment of revoked",
	} {
		t.Run(name, func(t *testing.T) {
			m := walked(bug)
			for n := range uint64(200) {
				if broken, last, _ := m.walk(rand.New(rand.NewPCG(n, 0)), 2000); broken != "" {
					t.Logf("seed %d: %s after %s", n, broken, last[len(last)-1])
					return
				}
			}
			t.Error("200 walks did not find it")
		})
	}
}

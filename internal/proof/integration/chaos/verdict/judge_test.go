package verdict

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// tale is an artificial history. There are two shards with a key each, and a record every 100 ms
// for 40 s. Worker a has both shards. It is frozen from 10.05 s to 20 s, in the middle of a call on
// each shard. Worker b takes over at 16 s from the last checkpoint.
type tale struct {
	History
	a, b *Journal
}

func (t *tale) handle(j *Journal, shard string, epoch uint64, number int, start, end int64) {
	j.Handlings = append(j.Handlings, Handling{Put: t.put(shard, number), Shard: shard, Sequence: big.NewInt(int64(1000 + number)), Epoch: epoch, Start: start, End: end})
}

func (t *tale) call(j *Journal, shard string, epoch uint64, start, end int64, failed bool) {
	j.Calls = append(j.Calls, Call{shard, epoch, start, end, failed})
}

func (t *tale) put(shard string, number int) Put {
	return Put{Key: "key-" + shard, Number: number, At: int64(number-1) * 100 * ms}
}

func told() *tale {
	t := &tale{a: &Journal{Life: "a.1"}, b: &Journal{Life: "b.1"}}
	t.Allowance = 2 * time.Second
	t.Faults = []Fault{{Kind: "freeze", Lives: []string{"a.1"}, From: 10*sec + 50*ms, To: 20 * sec, Until: 17*sec + 50*ms, Repeats: true, Froze: true}}
	for _, shard := range []string{"one", "two"} {
		const records = 400
		for n := 1; n <= records; n++ {
			p := t.put(shard, n)
			t.Puts = append(t.Puts, p)
			switch {
			case n <= 100: // one call for each record
				t.handle(t.a, shard, 1, n, p.At+10*ms, p.At+20*ms)
				t.call(t.a, shard, 1, p.At+10*ms, p.At+21*ms, false)
			case n == 101: // done before the freeze, in one call with the next record
				t.handle(t.a, shard, 1, n, p.At+10*ms, p.At+20*ms)
			case n == 102:
				t.handle(t.a, shard, 1, n, t.put(shard, 101).At+10*ms, 20*sec+10*ms)
				t.call(t.a, shard, 1, t.put(shard, 101).At+10*ms, 20*sec+20*ms, true)
			}
			if n >= 96 { // 95 records were saved
				start := max(p.At+10*ms, 16*sec+int64(n)*ms)
				t.handle(t.b, shard, 2, n, start, start+ms/2)
				t.call(t.b, shard, 2, start, start+ms/2, false)
			}
		}
		t.a.Saves = append(t.a.Saves, Save{shard, big.NewInt(1095), 1, t.put(shard, 95).At + 15*ms, t.put(shard, 95).At + 18*ms})
	}
	return t
}

func (t *tale) judge() Verdict {
	t.Journals = append(t.Journals, *t.a, *t.b)
	return Judge(t.History)
}

func TestAFreezeIsExcused(t *testing.T) {
	told := told()
	v := told.judge()
	if !v.Clean() {
		t.Fatalf("%q", v.Violations)
	}
	// b handles 96 to 102 again. b handles 102 first, because a handled it late.
	if v.Put != 800 || v.Handled != 800+2*7 || v.Repeated != 2*7 || v.Late != 2 || v.Saves != 2 {
		t.Errorf("%+v", v)
	}
	if k := v.Kinds; len(k) != 1 || k[0].Repeated != 14 || k[0].Times != 1 || k[0].Wait != 6*time.Second+102500*time.Microsecond-100*time.Millisecond ||
		k[0].Allowed != 9*time.Second || v.Calm > 20*time.Millisecond {
		t.Errorf("%+v, calm %v", k, v.Calm)
	}
}

func TestWhatIsWrongIsFound(t *testing.T) {
	drop := func(j *Journal, shard string, from, to int) {
		j.Handlings = slices.DeleteFunc(j.Handlings, func(h Handling) bool { return h.Shard == shard && h.Number >= from && h.Number <= to })
	}
	at := func(j *Journal, shard string, number int) *Handling {
		i := slices.IndexFunc(j.Handlings, func(h Handling) bool { return h.Shard == shard && h.Number == number })
		return &j.Handlings[i]
	}
	again := func(t *tale, f Fault) { // c handles the last record again, 50 s after the start
		t.Faults = append(t.Faults, f)
		c := &Journal{Life: "c.1"}
		t.handle(c, "one", 3, 400, 50*sec, 50*sec+ms)
		t.Journals = append(t.Journals, *c)
	}
	for _, c := range []struct {
		name  string
		do    func(*tale)
		sort  string // "" means no violation
		says  string
		count func(Verdict) int
	}{
		{"one record is lost", func(t *tale) { drop(t.b, "one", 200, 200) }, "lost", "number 200 of key key-one was never handled",
			func(v Verdict) int { return v.Lost }},
		{"an overtaken owner saved what it handled late", func(t *tale) { drop(t.b, "one", 102, 102) }, "lost", "which did not own one any more",
			func(v Verdict) int { return v.Lost }},
		{"two numbers of a key change places", func(t *tale) {
			x, y := at(t.b, "one", 200), at(t.b, "one", 201)
			x.Put, y.Put = y.Put, x.Put
		}, "order", "number 200 of key key-one was first handled after number 201", func(v Verdict) int { return v.Disorder }},
		{"a shard goes back within an epoch", func(t *tale) {
			x, y := at(t.b, "one", 200), at(t.b, "one", 201)
			x.Sequence, y.Sequence = y.Sequence, x.Sequence
		}, "order", "which comes later", func(v Verdict) int { return v.Disorder }},
		{"a call that succeeded comes again", func(t *tale) {
			start := t.put("one", 300).At + 50*ms
			t.handle(t.b, "one", 2, 300, start, start+ms)
		}, "order", "one at epoch 2", func(v Verdict) int { return v.Disorder }},
		{"a repetition without a fault", func(t *tale) {
			j := &Journal{Life: "c.1"}
			for n := 390; n <= 400; n++ {
				t.handle(j, "one", 3, n, 50*sec+int64(n)*ms, 50*sec+int64(n)*ms)
			}
			t.a.Handlings = append(t.a.Handlings, j.Handlings...)
			for i := range t.a.Handlings {
				if h := &t.a.Handlings[i]; h.Epoch == 3 {
					h.Shard = "one"
				}
			}
		}, "repeat", "no fault struck b.1", func(v Verdict) int { return v.Unexplained }},
		{"a fault that may not cause any", func(t *tale) { t.Faults[0].Repeats = false }, "repeat", "no fault struck a.1",
			func(v Verdict) int { return v.Unexplained }},
		{"a fault that struck somebody else", func(t *tale) { t.Faults[0].Lives = []string{"b.1"}; t.Faults[0].Froze = false }, "repeat", "no fault struck a.1",
			func(v Verdict) int { return v.Unexplained }},
		{"an owner begins a call after the next one", func(t *tale) {
			t.handle(t.a, "one", 1, 103, 20*sec+30*ms, 20*sec+40*ms)
		}, "overlap", "a.1 began a call at epoch 1", func(v Verdict) int { return v.Overlaps }},
		{"it begins one and handles nothing", func(t *tale) { t.call(t.a, "one", 1, 20*sec+30*ms, 20*sec+40*ms, true) }, "overlap", "a.1 began a call at epoch 1",
			func(v Verdict) int { return v.Overlaps }},
		{"its call goes on for long", func(t *tale) { at(t.a, "one", 102).End = 23 * sec }, "overlap", "and was not frozen",
			func(v Verdict) int { return v.Overlaps }},
		{"it was never frozen", func(t *tale) { t.Faults[0].Froze = false }, "overlap", "and was not frozen", func(v Verdict) int { return v.Overlaps }},
		{"an epoch with two owners", func(t *tale) {
			t.handle(t.a, "one", 2, 400, 45*sec, 45*sec+ms)
		}, "overlap", "at epoch 2 was with", func(v Verdict) int { return v.Overlaps }},
		{"it saves after the next one began", func(t *tale) {
			t.a.Saves = append(t.a.Saves, Save{"one", big.NewInt(1102), 1, 20*sec + 12*ms, 20*sec + 15*ms})
		}, "checkpoint", "a.1 was told that it had saved", func(v Verdict) int { return v.Backwards }},
		{"a save that was on its way", func(t *tale) {
			t.a.Saves = append(t.a.Saves, Save{"one", big.NewInt(1095), 1, 10*sec + 40*ms, 20*sec + 15*ms})
		}, "", "", nil},
		{"a save is forgotten", func(t *tale) {
			t.a.Saves = append(t.a.Saves, Save{"one", big.NewInt(1096), 1, 9*sec + 516*ms, 9*sec + 518*ms})
		}, "checkpoint", "epoch 2 began before what epoch 1 was told to have saved", func(v Verdict) int { return v.Backwards }},
		{"a shard is silent for too long behind a fault", func(t *tale) {
			for i := range t.b.Handlings {
				if h := &t.b.Handlings[i]; h.Shard == "one" && h.Start < 22*sec {
					h.Start, h.End = 22*sec+int64(h.Number)*ms, 22*sec+int64(h.Number)*ms
				}
			}
			t.b.Calls = nil
		}, "silence", "until b.1 handled it", func(v Verdict) int { return v.Silences }},
		{"one whose owner was not struck is silent", func(t *tale) {
			for n := 1; n <= 110; n++ {
				p := Put{Key: "key-three", Number: n, At: t.put("one", n).At}
				t.Puts = append(t.Puts, p)
				end := p.At + ms
				if n > 105 {
					end = 16*sec + int64(n)*ms
				}
				t.b.Handlings = append(t.b.Handlings, Handling{p, "three", big.NewInt(int64(n)), 1, end - ms, end})
			}
		}, "silence", "key-three", func(v Verdict) int { return v.Silences }},
		{"a record that was never put", func(t *tale) { at(t.b, "one", 300).Key = "else" }, "order", "never put", nil},
		{"three epochs, of which the last begins first", func(t *tale) {
			// Epoch 2 belongs to b and begins at 16 s.
			c := &Journal{Life: "c.1"}
			t.handle(c, "one", 3, 400, 9*sec, 45*sec)
			t.Journals = append(t.Journals, *c)
		}, "overlap", "a.1 began a call at epoch 1", func(v Verdict) int { return v.Overlaps }},
		{"a repetition long after the fault", func(t *tale) { again(t, Fault{Kind: "old", From: sec, To: sec, Until: 2 * sec, Repeats: true}) },
			"repeat", "no fault struck b.1", func(v Verdict) int { return v.Unexplained }},
		{"a repetition before the fault", func(t *tale) {
			again(t, Fault{Kind: "new", From: 55 * sec, To: 55 * sec, Until: 60 * sec, Repeats: true})
		},
			"repeat", "no fault struck b.1", func(v Verdict) int { return v.Unexplained }},
		{"one in its time", func(t *tale) {
			again(t, Fault{Kind: "right", From: 49 * sec, To: 49 * sec, Until: 60 * sec, Repeats: true})
		}, "", "", nil},
		{"a repetition in the middle of what an owner does", func(t *tale) {
			t.Faults = append(t.Faults, Fault{Kind: "kill", Lives: []string{"b.1"}, From: 49 * sec, To: 49 * sec, Until: 60 * sec, Repeats: true})
			c := &Journal{Life: "c.1"}
			p := Put{Key: "key-three", Number: 1, At: 50 * sec}
			t.Puts = append(t.Puts, p)
			c.Handlings = append(c.Handlings, Handling{p, "three", big.NewInt(1), 1, 50 * sec, 50*sec + ms})
			c.Handlings = append(c.Handlings, Handling{t.put("one", 400), "three", big.NewInt(2), 1, 50*sec + 2*ms, 50*sec + 3*ms})
			t.Journals = append(t.Journals, *c)
		}, "repeat", "not where an owner begins", func(v Verdict) int { return v.Unexplained }},
		{"two that handle the same in turn, one of them late", func(t *tale) {
			t.Faults[0].Until = 20 * sec
			for i := range t.b.Handlings {
				if h := &t.b.Handlings[i]; h.Shard == "one" && h.Number >= 104 {
					h.Start, h.End = max(h.Start, 20*sec+100*ms+int64(h.Number)*ms), max(h.End, 20*sec+100*ms+int64(h.Number)*ms)
				}
			}
			t.handle(t.a, "one", 1, 103, t.put("one", 101).At+10*ms, 20*sec+12*ms)
			t.handle(t.a, "one", 1, 104, t.put("one", 101).At+10*ms, 20*sec+14*ms)
		}, "", "", nil},
		{"a shard that nobody had yet", func(t *tale) {
			p := Put{Key: "key-three", Number: 1, At: 10*sec + 20*ms}
			t.Puts = append(t.Puts, p)
			t.b.Handlings = append(t.b.Handlings, Handling{p, "three", big.NewInt(1), 1, 17 * sec, 17*sec + ms})
		}, "", "", nil},
		{"a shard that the struck owner had once", func(t *tale) {
			for i, h := range []struct {
				j       *Journal
				at, end int64
			}{{t.a, sec, sec + ms}, {t.b, 5 * sec, 5*sec + ms}, {t.b, 10*sec + 100*ms, 16 * sec}} {
				p := Put{Key: "key-three", Number: i + 1, At: h.at}
				t.Puts = append(t.Puts, p)
				h.j.Handlings = append(h.j.Handlings, Handling{p, "three", big.NewInt(int64(i)), uint64(min(i, 1)), h.end - ms/2, h.end})
			}
		}, "silence", "key-three", func(v Verdict) int { return v.Silences }},
		{"a call that failed comes again", func(t *tale) {
			t.Faults = append(t.Faults, Fault{Kind: "outage", From: 29 * sec, To: 30 * sec, Until: 31 * sec, Repeats: true})
			at(t.b, "one", 300).Start = t.put("one", 300).At + 5*ms
			t.call(t.b, "one", 2, t.put("one", 300).At+5*ms, t.put("one", 300).At+15*ms, true)
			t.handle(t.b, "one", 2, 300, t.put("one", 300).At+50*ms, t.put("one", 300).At+60*ms)
		}, "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := told()
			c.do(told)
			v := told.judge()
			if c.sort == "" {
				if !v.Clean() {
					t.Errorf("%q", v.Violations)
				}
				return
			}
			if !slices.ContainsFunc(v.Violations, func(s string) bool { return strings.HasPrefix(s, c.sort+":") && strings.Contains(s, c.says) }) {
				t.Errorf("%q, want %s: … %s", v.Violations, c.sort, c.says)
			}
			if c.count != nil && c.count(v) == 0 {
				t.Errorf("not counted: %+v", v)
			}
		})
	}
}

func TestJournalsComeBackAsTheyWereWritten(t *testing.T) {
	p := Put{"k", 7, 5}
	var text []byte
	text = AppendHandling(text, p, "s", "123456789012345678901234567890", 3, 10, 11)
	text = AppendCall(text, Call{"s", 3, 10, 12, true})
	text = AppendSave(text, "s", "42", 3, 13, 14)
	whole := len(text)
	text = append(text, "record\tk\t8"...)
	var j Journal
	rest, err := j.Add(text)
	if err != nil || string(rest) != string(text[whole:]) {
		t.Fatalf("%q, %v", rest, err)
	}
	if got := fmt.Sprint(j.Handlings, j.Calls, j.Saves); got != "[{{k 7 5} s 123456789012345678901234567890 3 10 11}] [{s 3 10 12 true}] [{s 42 3 13 14}]" {
		t.Error(got)
	}
	for _, line := range []string{"call\ts\t3\t10\t12\tok\tmore\n", "call\ts\t3\t10\t12\n", "call\ts\t3\t10\t12\tmaybe\n", "saved\ts\t4x\t3\t13\t14\n", "\n"} {
		if rest, err := j.Add([]byte(line)); err == nil || string(rest) != line {
			t.Errorf("%q: %q, %v", line, rest, err)
		}
	}
	puts, err := ParsePuts(AppendPut(nil, p))
	if err != nil || len(puts) != 1 || puts[0] != p {
		t.Errorf("%v, %v", puts, err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte("record\tk\t7\t5\ts\t99\t3\t10\t11\ncall\ts\t3\t10\t12\tok\nsaved\ts\t42\t3\t13\t14\n"))
	f.Add([]byte("record\tk\n"))
	f.Add([]byte("call\ts\t-3\t10\t12\tmaybe\n"))
	f.Add([]byte("saved\ts\tx\t3\t13\t14\textra\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		j := Journal{Life: "a"}
		rest, err := j.Add(text)
		if err == nil && strings.Contains(string(rest), "\n") {
			t.Errorf("whole lines are left: %q", rest)
		}
		Judge(History{Journals: []Journal{j}}) // any result is accepted
	})
}

func TestAFaultOfTwoParts(t *testing.T) {
	told := told()
	told.Faults = append(told.Faults, Fault{Kind: "freeze", Part: true, Lives: []string{"b.1"}, From: 11 * sec, To: 12 * sec, Until: 20*sec + 50*ms})
	v := told.judge()
	if len(v.Kinds) != 1 || v.Kinds[0].Times != 1 || v.Kinds[0].Allowed != 12*time.Second {
		t.Errorf("%+v", v.Kinds)
	}
	if !v.Clean() {
		t.Errorf("%q", v.Violations)
	}
}

// Faults excuse part of a record's wait. If faults overlap, the time that they share is excused
// only once.
func TestTimeIsExcusedOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []Fault
		calm   int // number of records that waited too long
	}{
		{"none", nil, 1},
		{"all of it", []Fault{{Kind: "a", From: 0, Until: 10 * sec}}, 0},
		{"all but the allowance", []Fault{{Kind: "a", From: 2 * sec, Until: 10 * sec}}, 0},
		{"too little", []Fault{{Kind: "a", From: 2*sec + ms, Until: 10 * sec}}, 1},
		{"the same twice", []Fault{{Kind: "a", From: 0, Until: 4 * sec}, {Kind: "b", From: 0, Until: 4 * sec}}, 1},
		{"overlapping", []Fault{{Kind: "a", From: 0, Until: 5 * sec}, {Kind: "b", From: 3 * sec, Until: 9 * sec}}, 0},
		{"one inside the other", []Fault{{Kind: "a", From: 0, Until: 7 * sec}, {Kind: "b", From: sec, Until: 3 * sec}}, 1},
		{"one of somebody else", []Fault{{Kind: "a", From: 0, Until: 10 * sec, Lives: []string{"b.1"}}}, 1},
		{"one of its shard", []Fault{{Kind: "a", From: 0, Until: 10 * sec, Shards: []string{"r", "s"}}}, 0},
		{"one of another shard", []Fault{{Kind: "a", From: 0, Until: 10 * sec, Shards: []string{"r"}}}, 1},
		{"one of its shard, and of somebody else", []Fault{{Kind: "a", From: 0, Until: 10 * sec, Shards: []string{"s"}, Lives: []string{"b.1"}}}, 0},
		{"one of another shard, and of its owner", []Fault{{Kind: "a", From: 0, Until: 10 * sec, Shards: []string{"r"}, Lives: []string{"a.1"}}}, 0},
	} {
		before := Put{"k", 1, -sec}
		p := Put{"k", 2, 0}
		v := Judge(History{Puts: []Put{before, p}, Allowance: 2 * time.Second, Faults: c.faults, Journals: []Journal{{Life: "a.1", Handlings: []Handling{
			{before, "s", big.NewInt(1), 1, -sec, -sec + ms}, {p, "s", big.NewInt(2), 1, 10*sec - ms, 10 * sec}}}}})
		if v.Silences != c.calm || v.Clean() != (c.calm == 0) {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

package failure

import (
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestWhatDeathsSay(t *testing.T) {
	for _, c := range []struct {
		name              string
		d                 lease.Deaths
		after             int
		suspicious, kills bool
	}{
		{"nobody died", lease.Deaths{}, 2, false, false},
		{"one did", lease.Deaths{Count: 1}, 2, false, false},
		{"as many as it takes", lease.Deaths{Count: 2}, 2, true, false},
		{"it is never asked", lease.Deaths{Count: 9, Tried: 2, Alone: 1, Record: shard.Oldest}, -1, false, true},
		{"records are being tried", lease.Deaths{Record: shard.Oldest}, 2, true, false},
		{"beside others", lease.Deaths{Count: 3, Tried: 1, Record: shard.Oldest}, 2, true, false},
		{"alone", lease.Deaths{Count: 3, Tried: 1, Alone: 1, Record: shard.Oldest}, 2, true, true},
		{"alone, and nobody before", lease.Deaths{Count: 1, Tried: 1, Alone: 1, Record: shard.Oldest}, 2, true, false},
	} {
		if s, k := Suspicious(c.d, c.after), Kills(c.d, c.after); s != c.suspicious || k != c.kills {
			t.Errorf("%s: suspicious %t, kills %t", c.name, s, k)
		}
	}
}

// TestWhoseDeathsTheyAre checks that the deaths at a record are kept while earlier records are read
// again for a sink. The deaths must not count against any record after that record.
func TestWhoseDeathsTheyAre(t *testing.T) {
	at := func(seq string) shard.Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	noted := lease.Deaths{At: at("10"), Count: 3, Tried: 2, Alone: 1, Record: at("20")}
	innocent := noted
	innocent.Tried, innocent.Alone = 0, 0
	unexplained := noted
	unexplained.Count = 6
	anew := lease.Deaths{At: at("10"), Count: 2, Record: at("20")}
	untried := lease.Deaths{At: at("10"), Count: 3, Record: at("20")}
	besideOthers := noted
	besideOthers.Alone = 0
	for _, c := range []struct {
		name   string
		d      lease.Deaths
		record shard.Position
		clears bool
		then   lease.Deaths
	}{
		{"the record itself", noted, at("20"), false, noted},
		{"one before it", noted, at("15"), true, noted},
		{"one before the checkpoint", noted, at("5"), true, noted},
		{"one after it, which has expired", noted, at("30"), false, innocent},
		{"one before it, but more have died than that explains", unexplained, at("15"), false, anew},
		{"one before it, at which workers died beside others", besideOthers, at("15"), true, besideOthers},
		{"one after it, at which workers died beside others", besideOthers, at("30"), false, innocent},
		{"no worker died of the last one that was tried", untried, at("15"), false, untried},
		{"no record was tried", lease.Deaths{Count: 2}, at("15"), false, lease.Deaths{Count: 2}},
	} {
		tr := Trial{Deaths: c.d}
		if clears := tr.Clears(c.record, 2); clears != c.clears || tr.Deaths != c.then {
			t.Errorf("%s: clears %t, then %v, want %t, %v", c.name, clears, tr.Deaths, c.clears, c.then)
		}
	}
}

// A trial begins if enough owners have died. It ends after a number of records or after a time.
func TestATrialIsBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	if NewTrial(lease.Deaths{Count: 1}, 2, now) != nil {
		t.Error("one death begins a trial")
	}
	tr := NewTrial(lease.Deaths{Count: 2}, 2, now)
	if tr == nil || tr.Over(now) {
		t.Fatalf("%+v", tr)
	}
	if tr.Over(now.Add(trialLasts-1)) || !tr.Over(now.Add(trialLasts)) {
		t.Error("it ends at another time")
	}
	for range trialRecords - 1 {
		tr.Next(shard.Oldest)
	}
	if tr.Over(now) {
		t.Error("it ends before the last record")
	}
	if tr.Next(shard.Oldest); !tr.Over(now) {
		t.Error("it has no end")
	}
}

// A term stores each step of a record that it tries.
func TestWhatATrialNotes(t *testing.T) {
	at := func(seq string) shard.Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	died := lease.Deaths{At: at("10"), Count: 3, Tried: 2, Alone: 1, Record: at("20")}
	for _, c := range []struct {
		name string
		does func(tr *Trial) lease.Deaths
		want lease.Deaths
		turn Turn
	}{
		{"the record is begun again", func(tr *Trial) lease.Deaths { return tr.Begin(tr.Wants(at("20"), false), at("20"), 7) },
			lease.Deaths{At: at("10"), Count: 3, Tried: 2, Alone: 1, Record: at("20"), Trial: 7}, ByItself},
		{"another one is begun", func(tr *Trial) lease.Deaths { return tr.Begin(tr.Wants(at("30"), false), at("30"), 7) },
			lease.Deaths{At: at("10"), Count: 3, Record: at("30"), Trial: 7}, Beside},
		{"another one is begun by a function that pulls", func(tr *Trial) lease.Deaths { return tr.Begin(tr.Wants(at("30"), true), at("30"), 7) },
			lease.Deaths{At: at("10"), Count: 3, Tried: 2, Alone: 1, Record: at("30"), Trial: 7}, ByItself},
		{"it was handled", func(tr *Trial) lease.Deaths { return tr.Survived(at("10"), 7) },
			lease.Deaths{At: at("20"), Count: 3, Record: at("20")}, NoTurn},
		{"it was handled behind the checkpoint", func(tr *Trial) lease.Deaths { return tr.Survived(at("90"), 7) },
			lease.Deaths{At: at("90"), Count: 3, Record: at("90")}, NoTurn},
		{"it failed", func(tr *Trial) lease.Deaths { tr.Deaths.Trial = 7; return tr.Failed(7) }, died, NoTurn},
		{"it was dead-lettered", func(tr *Trial) lease.Deaths { return tr.GaveUp(at("10"), 7, false) },
			lease.Deaths{At: at("20"), Record: at("20")}, NoTurn},
		{"it was dead-lettered, and a sink has another position", func(tr *Trial) lease.Deaths { return tr.GaveUp(at("10"), 7, true) },
			WithKilled(lease.Deaths{At: at("20"), Record: at("20")}, Killed(nil).Add(at("20")), 7), NoTurn},
	} {
		tr := Trial{Deaths: died}
		if got := c.does(&tr); got != c.want || tr.Turn != c.turn {
			t.Errorf("%s: %+v, turn %d, want %+v, %d", c.name, got, tr.Turn, c.want, c.turn)
		}
	}
}

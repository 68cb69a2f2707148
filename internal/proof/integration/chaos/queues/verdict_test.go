package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

func TestWhatExplainsARepetition(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	first, again := handling{0, "w0.1", at(10), at(11)}, handling{0, "w1.1", at(16), at(17)}
	for _, c := range []struct {
		name      string
		e         event
		explained bool
	}{
		{"the process was killed during the handling", event{"kill -9", "w0.1", at(10), at(10)}, true},
		{"… or before its acknowledgement", event{"kill -9", "w0.1", at(12), at(12)}, true},
		{"another process was killed", event{"kill -9", "w2.1", at(10), at(10)}, false},
		{"it was killed much later", event{"kill -9", "w0.1", at(20), at(20)}, false},
		{"it was frozen", event{"SIGSTOP beyond the hold", "w0.1", at(10), at(18)}, true},
		{"it was frozen for a moment", event{"a short SIGSTOP", "w0.1", at(10), at(11)}, false},
		{"it was restarted in order", event{"SIGTERM and restart", "w0.1", at(10), at(11)}, false},
		{"the service was away", event{refused, "", at(9), at(16)}, true},
		{"the answer of its acknowledgement was lost", event{lostAcks, "", at(9), at(16)}, false},
		{"the answer of a receive was lost", event{lostReceives, "", at(9), at(16)}, false},
	} {
		v := judge([]handling{first, again}, 1, []event{c.e})
		if v.lost != 0 || v.again != 1 || v.unexplained != map[bool]int{true: 0, false: 1}[c.explained] {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	if v := judge([]handling{first}, 2, nil); v.lost != 1 || v.again != 0 {
		t.Errorf("a lost record: %+v", v)
	}
}

func TestJournalsOfKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "w1.2.journal"), []byte("7 1000 2000\n12 3000 4000\n13 50"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(filepath.Join(dir, "*.journal"))
	want := []handling{{7, "w1.2", time.UnixMilli(1000), time.UnixMilli(2000)}, {12, "w1.2", time.UnixMilli(3000), time.UnixMilli(4000)}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

package multilang

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// runProgram is the program of the tests. It prints each record and each ending action as a line of
// output, and makes a checkpoint after each batch. Its fault happens only once per test: in the
// process that creates the file MULTILANG_ONCE.
func runProgram(mode string) {
	in := bufio.NewReader(os.Stdin)
	say := func(format string, args ...any) { fmt.Printf("\n"+format+"\n", args...) }
	read := func() (m struct {
		Action   string
		Sequence string `json:"sequenceNumber"`
		Error    string
		Records  []struct{ Data []byte }
	}) {
		line, err := in.ReadString('\n')
		if err != nil {
			if mode == "stays" {
				signal.Ignore(syscall.SIGTERM)
				select {}
			}
			os.Exit(0)
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			panic(err)
		}
		return m
	}
	checkpoint := func() {
		say(`{"action": "checkpoint", "sequenceNumber": null, "subSequenceNumber": null}`)
		if m := read(); m.Action != "checkpoint" || m.Error != "" {
			say("checkpoint: %+v", m)
		}
	}
	for {
		m := read()
		for _, r := range m.Records {
			say("record %s", r.Data)
		}
		if m.Action == "processRecords" || m.Action == "initialize" && mode == "early" {
			misbehave(mode, say)
		}
		switch m.Action {
		case "processRecords":
			checkpoint()
		case "shardEnded", "shutdownRequested":
			if m.Action == "shutdownRequested" || mode != "forgets" || !first() {
				checkpoint()
			}
			say("%s", m.Action)
		case "leaseLost":
			say("leaseLost")
		}
		say(`{"action": "status", "responseFor": %q}`, m.Action)
		if mode == "twice" {
			say(`{"action": "status", "responseFor": %q}`, m.Action)
		}
	}
}

// first reports whether no process of this test has called it before.
func first() bool {
	f, err := os.OpenFile(os.Getenv("MULTILANG_ONCE"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// misbehave commits the fault of a mode.
func misbehave(mode string, say func(string, ...any)) {
	switch mode {
	case "good", "forgets", "stays", "twice":
		return
	}
	if !first() {
		return
	}
	switch mode {
	case "dies":
		fmt.Fprint(os.Stderr, "the disk is full")
		os.Exit(3)
	case "floods":
		fmt.Print(strings.Repeat("x", 5<<20))
		fmt.Fprint(os.Stderr, strings.Repeat("y", 5<<20))
	case "nonsense":
		say(`{"action": "status", "responseFor": "leaseLost"}`)
	case "hangs":
		select {}
	case "impatient":
		for range 10 * mostPending {
			say(`{"action": "checkpoint"}`)
		}
		select {}
	case "early":
		os.Exit(4)
	}
}

package guide

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
)

// booked prints the orders that the program of exactly-once.md has booked.
const booked = `package main

import (
	"database/sql"
	"fmt"
	"log"

	_ "modernc.org/sqlite"
)

func main() {
	db, err := sql.Open("sqlite", "ledger.db?_pragma=busy_timeout(5000)")
	if err != nil {
		log.Fatal(err)
	}
	var orders string
	if err := db.QueryRow("select coalesce(group_concat(id || ' of ' || customer, ', ' order by id), '') from bookings").Scan(&orders); err != nil {
		log.Fatal(err)
	}
	fmt.Print(orders)
}
`

// The programs and tests that a reader runs from the pages work in an empty module.
func TestThePagesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs: not part of the short form")
	}
	module := extract(t)
	write(t, filepath.Join(module, "booked", "main.go"), booked)
	bin := filepath.Join(module, "bin")
	if out, err := inModule(t, module, "build", "-o", bin+string(filepath.Separator), "./first-consumer", "./exactly-once", "./exactly-once-parallel", "./booked").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	srv := kinesistest.NewServer(t)
	srv.CreateStream("flights", 4)
	srv.CreateStream("orders", 2)

	t.Run("testing", func(t *testing.T) {
		if out, err := inModule(t, module, "test", "./testing").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("writing-a-store", func(t *testing.T) {
		longform.Only(t) // the store's own tests run the contract
		if out, err := inModule(t, module, "test", "-short", "./writing-a-store").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("first-consumer", func(t *testing.T) {
		srv.Put("flights", "ATL", []byte(`{"origin":"ATL","flight":"DL1572"}`))
		srv.Put("flights", "HNL", []byte(`{"origin":"HNL","flight":"HA12"}`))
		srv.Put("flights", "ATL", []byte(`{"origin":"ATL","flight":"DL89"}`))
		worker := start(t, srv, filepath.Join(bin, "first-consumer"))
		var got []string
		for len(got) < 3 && worker.lines.Scan() {
			got = append(got, worker.lines.Text())
		}
		worker.stop()
		slices.Sort(got)
		// This is the output that the page shows.
		want := []string{
			`shardId-000000000002 HNL {"origin":"HNL","flight":"HA12"}`,
			`shardId-000000000003 ATL {"origin":"ATL","flight":"DL1572"}`,
			`shardId-000000000003 ATL {"origin":"ATL","flight":"DL89"}`,
		}
		if !slices.Equal(got, want) || !strings.Contains(read(t, "first-consumer.md"), "    "+strings.Join(want, "\n    ")+"\n") {
			t.Errorf("it printed %q, and the page has something else", got)
		}
	})
	srv.Put("orders", "ann", []byte(`{"id":"o-1","customer":"ann"}`))
	srv.Put("orders", "ann", []byte(`???`))
	srv.Put("orders", "bob", []byte(`{"id":"o-2","customer":"bob"}`))
	t.Run("exactly-once", func(t *testing.T) { books(t, srv, bin, "exactly-once") })
	t.Run("exactly-once-parallel", func(t *testing.T) { books(t, srv, bin, "exactly-once-parallel", "-partitions", "16") })
}

// books runs a program that books the orders of the stream, until it has booked all of them.
func books(t *testing.T, srv *kinesistest.Server, bin, program string, args ...string) {
	worker := start(t, srv, filepath.Join(bin, program), args...)
	const want = "o-1 of ann, o-2 of bob"
	got := ""
	for range 300 {
		time.Sleep(100 * time.Millisecond)
		ask := exec.CommandContext(t.Context(), filepath.Join(bin, "booked"))
		ask.Dir = worker.dir
		out, _ := ask.CombinedOutput() // an error until there is a table
		if got = string(out); got == want {
			break
		}
	}
	worker.stop()
	if got != want {
		t.Errorf("booked %q", got)
	}
	if letters, err := os.ReadFile(filepath.Join(worker.dir, "orders.dead.ndjson")); err != nil || strings.Count(string(letters), "\n") != 1 {
		t.Errorf("letters: %q, %v", letters, err)
	}
}

// worker is a process that runs the program of a page in a new folder.
type worker struct {
	dir   string
	lines *bufio.Scanner // of its output
	stop  func()         // stops it gracefully
}

// start runs a program with the settings of first-consumer.md.
func start(t *testing.T, srv *kinesistest.Server, program string, args ...string) worker {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the test cannot stop a process gracefully on Windows")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), 10*time.Second
	cmd.Env = append(os.Environ(),
		"AWS_ENDPOINT_URL_KINESIS="+srv.URL(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local")
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	return worker{dir: cmd.Dir, lines: bufio.NewScanner(out), stop: func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(program), err, &log)
		}
		late.Stop()
	}}
}

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestACommandEndsWithAWorkerThatIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends it")
	}
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	server.Put("s", "k", []byte("x"))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "consume", endpoint, "--stream=s", "--app=a", "--store=memory:", "--exec", "echo begun; exec sleep 1000")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	// The pipe ends when both the worker and its command have closed it.
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // the command sleeps longer than that
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "begun") {
		t.Fatalf("the command said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

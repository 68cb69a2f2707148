package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/weir-go/weir/internal/proof/wronginput"
)

// wrongOutputs returns inputs with full disks, unwritable files, pipes that nobody reads, and ports
// in use.
func wrongOutputs(p *wrongPlace) []wronginput.Input {
	t := p.t
	inputs := []wronginput.Input{
		fails("a port that is taken", "local --addr "+p.kinesis.Addr(), "is taken by another program"),
		fails("a health port that is taken", "consume --stream s --app port --store sqlite:"+p.path("port.db")+" --health "+p.kinesis.Addr()+" "+p.endpoint, "is taken by another program"),
		fails("a certificate that cannot be written", "local --addr 127.0.0.1:0 --tls --ca-file "+p.path("none/ca.pem"), "none/ca.pem"),
		fails("an export onto a file that is there", "group export --app a "+p.store+" "+p.records, "records", "exists"),
		fails("an export to a directory that is not there", "group export --app a "+p.store+" "+p.path("none/x"), "none/x"),
	}
	if runtime.GOOS == "windows" {
		return under("output", inputs...)
	}
	to := func(out *os.File, in wronginput.Input) wronginput.Input {
		in.Stdout = out
		return in
	}
	for _, c := range [...]struct{ name, args string }{
		{"export", "group export --app a " + p.store + " -"},
		{"describe", "group describe --no-lag --look 0 --app a " + p.store},
		{"list", "group list --no-lag -o json " + p.store},
		{"statements", "store create --print --store postgres://u@h/d"},
		{"put", "put --stream s " + p.endpoint + " " + p.records},
		{"version", "version"},
	} {
		if runtime.GOOS == "linux" {
			inputs = append(inputs, to(device(t, "/dev/full"), fails("a full disk for "+c.name, c.args, "standard output", "no space left")))
		}
		inputs = append(inputs, to(abandonedPipe(t), fails("a closed pipe for "+c.name, c.args, "standard output", "broken pipe")))
	}
	if runtime.GOOS == "linux" {
		inputs = append(inputs,
			fails("a SQLite file that is a device", "group describe --app a --store sqlite:/dev/full", "/dev/full"),
			fails("records from a device without an end", "put --stream s "+p.endpoint+" /dev/zero", "line 1 is too large", "nothing was put"),
			fails("a dump from a device without an end", "group import --app fresh --yes "+p.store+" /dev/zero", "/dev/zero", "line 1 is longer"),
			fails("an export to a full disk", "group export --app a "+p.store+" /dev/full", "/dev/full", "exists"),
			fails("a certificate to a full disk", "local --addr 127.0.0.1:0 --tls --ca-file /dev/full", "/dev/full", "no space left"),
			to(device(t, "/dev/full"), fails("a full disk for tail", "tail --stream s --from oldest --limit 1 "+p.endpoint, "standard output", "no space left")),
			to(device(t, "/dev/full"), fails("a full disk for consume", "consume --stream s --app full --store sqlite:"+p.path("full.db")+" "+p.endpoint, "standard output", "no space left")),
		)
	}
	return under("output", inputs...)
}

// device opens a device file for writing.
func device(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// abandonedPipe returns a pipe whose reader is closed.
func abandonedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

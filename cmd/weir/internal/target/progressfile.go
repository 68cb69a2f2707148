package target

import (
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/internal/dump"
	"github.com/weir-go/weir/lease"
)

var fileForm = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// DumpProgress writes the progress in a view to a new file, before a command changes it. If path is
// "", it chooses a name.
func DumpProgress(app string, v lease.View, path string, now time.Time) (string, error) {
	if path == "" {
		path = DumpName(app, now, 0)
	}
	return path, WriteDump(path, dump.Of(app, v))
}

// DumpName returns the name of a file for the progress of an application at a time. n distinguishes
// several files of the same second.
func DumpName(app string, now time.Time, n int) string {
	name := fmt.Sprintf("weir-%s-%s", fileForm.ReplaceAllString(app, "_"), now.UTC().Format("20060102T150405Z"))
	if n > 0 {
		name += fmt.Sprintf("-%d", n+1)
	}
	return name + ".ndjson"
}

// WriteDump writes a dump to a new file and syncs it to disk. It fails if the file exists.
func WriteDump(path string, f dump.File) error {
	return cli.WriteNew(path, func(file *os.File) error { return dump.Write(file, f) })
}

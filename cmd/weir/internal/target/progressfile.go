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

// DumpProgress writes a view's progress to a new file before a change. path "" chooses one.
func DumpProgress(app string, v lease.View, path string, now time.Time) (string, error) {
	if path == "" {
		path = DumpName(app, now, 0)
	}
	return path, WriteDump(path, dump.Of(app, v))
}

// DumpName is the name of the file for an application's progress at a time, the nth one.
func DumpName(app string, now time.Time, n int) string {
	name := fmt.Sprintf("weir-%s-%s", fileForm.ReplaceAllString(app, "_"), now.UTC().Format("20060102T150405Z"))
	if n > 0 {
		name += fmt.Sprintf("-%d", n+1)
	}
	return name + ".ndjson"
}

// WriteDump writes a dump to a file that does not exist yet, for good.
func WriteDump(path string, f dump.File) error {
	return cli.WriteNew(path, func(file *os.File) error { return dump.Write(file, f) })
}

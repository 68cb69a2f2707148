package records

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/filter"
)

// FilterFlags contains the flags that select records to handle or print.
type FilterFlags struct {
	Patterns []string
	NotJSON  weir.NotJSON
	flag     *cobra.Command
}

const AboutFilters = `--filter takes a pattern of Amazon EventBridge, as event source mappings of
Lambda do, such as {"data":{"kind":["order"]}}. "data" is the payload, which must
be JSON, "partitionKey" is the key, and "approximateArrivalTimestamp" is the
arrival time in seconds. Records that match no pattern are skipped.`

// Register adds the flags. fail is the text about what happens to a record that is not JSON.
func (f *FilterFlags) Register(cmd *cobra.Command, fail string) {
	f.flag = cmd
	cmd.Flags().StringArrayVar(&f.Patterns, "filter", nil, "handle only records that match `PATTERN`, or the one in @FILE; may be repeated, and then one must match")
	cli.Choose(cmd, "filter-not-json", &f.NotJSON, "what happens to a record that is not JSON if a pattern needs \"data\": pass, drop (as Lambda does), or fail: "+fail,
		cli.Word("pass", weir.PassNotJSON, "it is handled like others"),
		cli.Word("drop", weir.DropNotJSON, "it is skipped"),
		cli.Word("fail", weir.FailNotJSON, fail))
}

// Compiled returns the filter, or nil if there is none.
func (f *FilterFlags) Compiled() (*filter.Filter, error) {
	if len(f.Patterns) == 0 {
		if f.flag.Flags().Changed("filter-not-json") {
			return nil, cli.Usagef("--filter-not-json applies only to records that a filter cannot read: add --filter")
		}
		return nil, nil
	}
	var texts []string
	for _, given := range f.Patterns {
		text, err := readPattern(given)
		if err != nil {
			return nil, err
		}
		if _, err := filter.Compile(text); err != nil {
			return nil, wrongFilter(given, err)
		}
		texts = append(texts, text)
	}
	compiled, err := filter.Compile(texts...)
	if err != nil {
		return nil, wrongFilter("", err)
	}
	return compiled, nil
}

// wrongFilter returns the error for a wrong pattern. given is the value of the flag.
func wrongFilter(given string, err error) error {
	name := "--filter"
	if file, is := strings.CutPrefix(given, "@"); is {
		name += fmt.Sprintf(" @%.140s", file)
	}
	return cli.Usagef("%s: %s", name, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "filter: "), "\n", "; "))
}

// mostPattern is the maximum size of a pattern in bytes.
const mostPattern = 1 << 20

// readPattern returns the pattern in the value of a flag, or in the file that the value names.
func readPattern(given string) (string, error) {
	path, is := strings.CutPrefix(given, "@")
	if !is {
		return given, nil
	}
	if path == "" {
		return "", cli.Usagef("--filter @ names no file: write it like @pattern.json")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", cli.Usagef("--filter: the file %.140s cannot be read: %v", path, cli.RootError(err))
	}
	text, err := io.ReadAll(io.LimitReader(file, mostPattern))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", cli.Usagef("--filter: the file %.140s cannot be read: %v", path, cli.RootError(err))
	}
	return string(text), nil
}

// Apply sets the filter in the options of a consumer.
func (f *FilterFlags) Apply(to *weir.Filter) error {
	compiled, err := f.Compiled()
	if compiled != nil {
		to.By, to.NotJSON = compiled, f.NotJSON
	}
	return err
}

// Passes reports whether the filter selects a record. A nil filter selects all.
func (f *FilterFlags) Passes(by *filter.Filter, r weir.Record) (bool, error) {
	if by == nil {
		return true, nil
	}
	matches, isJSON := by.Match(r.Data, r.PartitionKey, r.ArrivalTime())
	if !isJSON && f.NotJSON == weir.FailNotJSON {
		return false, fmt.Errorf("the record %s is not JSON, which --filter needs: use --filter-not-json pass or drop", r.ID())
	}
	return matches || !isJSON && f.NotJSON == weir.PassNotJSON, nil
}

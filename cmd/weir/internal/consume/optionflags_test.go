package consume

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

// optionFields returns the fields of weir.Options by their paths, such as "Batching.MaxRecords".
// The fields of a group of options are listed in place of the group.
func optionFields() map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	var list func(path string, of reflect.Type)
	list = func(path string, of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			group := f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == of.PkgPath()
			switch {
			case !f.IsExported():
			case group:
				list(path+f.Name+".", f.Type)
			default:
				fields[path+f.Name] = f
			}
		}
	}
	list("", reflect.TypeFor[weir.Options]())
	return fields
}

// Each option of the library has a flag, except for those listed below. The value of the flag must
// reach the option. An error about the option names this flag.
func TestEveryOptionIsAFlag(t *testing.T) {
	none := map[string]string{
		"DiscoverStreams": "--stream may be repeated", "OnEvent": "the command logs the events",
		"Logger": "--log", "ReuseBuffers": "the command sets it where its handlers copy",
		"Concurrency.MaxCalls":   "its default follows from --parallel",
		"Concurrency.MaxRecords": "its default is enough", "Concurrency.MaxBytes": "its default is enough",
		"Concurrency.MaxAge": "its default is enough",
	}
	values := map[string]string{
		"Batching.MaxRecords": "77", "Batching.MaxBytes": "7MiB", "MaxMemory": "17MiB",
		"MaxLeases": "77", "Weight": "7.5", "Polling.Share": "0.5", "Aggregates": "keep-packed",
		"Expired": "latest", "Transport": "sdk", "FanOut.Mode": "register", "FanOut.Name": "n",
		"FanOut.ARNs": "arn:aws:kinesis:us-east-1:000000000000:stream/s/consumer/c:1", "NoHistory": "true",
		"Concurrency.Keys": "64", "OnFailure.MaxAttempts": "7",
		"OnFailure.Bisect": "true", "OnFailure.MaxPerMinute": "7", "OnFailure.SuspectAfter": "7",
	}
	consume := Command(cli.Terminal{})
	for option, field := range optionFields() {
		flag := explain.OptionFlag(option)
		text := explain.InFlags(&weir.OptionError{Option: "Options." + option, Err: fmt.Errorf("is bad")}).Error()
		if _, not := none[option]; not {
			if flag != "" || text != "weir: Options."+option+" is bad" {
				t.Errorf("%s has the flag --%s, and the error %q", option, flag, text)
			}
			continue
		}
		if text != "--"+flag+" is bad" {
			t.Errorf("an error about %s is %q", option, text)
		}
		if consume.Flags().Lookup(flag) == nil {
			t.Errorf("%s has no flag --%s", option, flag)
			continue
		}
		value := values[option]
		if field.Type == reflect.TypeFor[time.Duration]() {
			value = "77s"
		} else if value == "" {
			continue // other tests cover it
		}
		var set options
		cmd := register(&set)
		if err := cmd.Flags().Set(flag, value); err != nil {
			t.Errorf("--%s %s: %v", flag, value, err)
		}
		v := reflect.ValueOf(set.options(slog.New(slog.DiscardHandler), weir.Oldest))
		for name := range strings.SplitSeq(option, ".") {
			v = v.FieldByName(name)
		}
		if v.IsZero() {
			t.Errorf("--%s does not set %s", flag, option)
		} else if d, is := v.Interface().(time.Duration); is && d != 77*time.Second {
			t.Errorf("--%s 77s sets %v", flag, d)
		}
	}
}

// An error about two options names the flags of both.
func TestTheErrorOfABatchThatWaitsForKeys(t *testing.T) {
	_, err := weir.New(nil, nil, weir.Options{
		Batching: weir.Batching{MaxWait: time.Second}, Concurrency: weir.Concurrency{Keys: 2},
	})
	const want = "--batch-wait cannot be combined with --parallel, whose batches have one key each"
	if text := explain.InFlags(err).Error(); !strings.Contains(text, want) {
		t.Errorf("the error is %q, want %q", text, want)
	}
}

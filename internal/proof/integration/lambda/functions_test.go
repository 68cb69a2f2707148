//go:build unix

// Package lambda_test runs AWS Lambda functions with the command weir. The functions use AWS's own
// runtime clients, and handle flights.
package lambda_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

const (
	flights = 20_000
	retries = 3
)

// wrong returns how a flight fails. Three flights always fail, and 1 % of all flights fail once.
func wrong(flight int) string {
	switch flight {
	case 2500, 7500, 12_500:
		return "always"
	}
	if flight%100 == 50 {
		return "once"
	}
	return ""
}

// aboutCall matches the message that each function prints about a call.
var aboutCall = regexp.MustCompile(`(?m)^\[function \d+\] .*request [0-9a-f-]{36} of arn:aws:lambda:` + servers.Region + `:000000000000:function:loader, \d{4,5} ms are left`)

func TestFunctionsOfEachLanguageHandleAllFlights(t *testing.T) {
	weir := built(t)
	for _, f := range []struct {
		name    string
		command func(t *testing.T, folder string) string
		stops   bool
		flags   []string
	}{
		{
			name:    "python",
			command: func(t *testing.T, _ string) string { return servers.PythonFunction(t, "app.handler") },
			flags:   []string{"--function-response-types=ReportBatchItemFailures"},
		},
		{
			name:    "node",
			command: func(t *testing.T, _ string) string { return servers.NodeFunction(t, "app.handler") },
			stops:   true,
			flags:   []string{"--function-response-types=ReportBatchItemFailures", "--parallelization-factor=4"},
		},
		{
			name:    "go",
			command: func(t *testing.T, folder string) string { return servers.GoFunction(t, folder) },
			stops:   true,
			flags:   []string{"--bisect-batch-on-function-error"},
		},
	} {
		t.Run(f.name, func(t *testing.T) {
			folder := filepath.Join("testdata", f.name)
			command := f.command(t, folder)
			s := newStage(t, flights, 4, wrong)
			said, took := s.run(t, weir, folder, append(f.flags, "--lambda="+command, fmt.Sprintf("--maximum-retry-attempts=%d", retries))...)
			for flight, letters := range s.check(t, f.stops) {
				for _, l := range letters {
					if l.Attempts != retries+1 {
						t.Errorf("flight %d was dead-lettered after %d attempts", flight, l.Attempts)
					}
					if l.Together != 1 || !strings.Contains(l.Error, "the function") {
						t.Errorf("flight %d was dead-lettered with %d, for %q", flight, l.Together, l.Error)
					}
				}
			}
			if !aboutCall.MatchString(said) {
				t.Errorf("no call says what it is:\n%s", s.end())
			}
			t.Logf("%d calls in %v", len(aboutCall.FindAllString(said, -1)), took)
		})
	}
}

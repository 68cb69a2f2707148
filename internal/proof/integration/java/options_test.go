package java_test

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
)

// plumbing are fields of the KCL's configuration that the KCL sets itself, or that replace its own
// classes. The page leaves them out.
var plumbing = []string{
	"checkpointFactory", "gracefulShutdownCoordinator", "coordinatorFactory", "leaseCleanupConfig", "consumerTaskFactory",
	"workerUtilizationAwareAssignmentConfig", "gracefulLeaseHandoffConfig", "executorService", "tableCreatorCallback",
	"streamName", "initialPositionInStream", "appStreamTracker", "streamArnConstructor", "retrievalFactory",
	"dataFetcherProvider", "usePollingConfigIdleTimeValue", "sleepTimeController",
}

var word = regexp.MustCompile("`([a-zA-Z]+)`")

// The page about the Java KCL has each option of the KCL itself, with the KCL's default.
func TestThePageHasTheOptionsOfTheKCL(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "moving", "java-kcl.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{} // defaults by option; "" if the row has another number of them
	for line := range strings.Lines(string(text)) {
		row := strings.Split(strings.TrimSpace(line), "|")
		if len(row) != 5 || row[0] != "" {
			continue
		}
		names, defaults := word.FindAllStringSubmatch(row[1], -1), strings.Split(row[2], ", ")
		for i, name := range names {
			told[name[1]] = ""
			if len(names) == len(defaults) {
				told[name[1]] = strings.TrimSpace(defaults[i])
			}
		}
	}
	srv := kinesistest.NewServer(t, kinesistest.Config{Region: servers.Region, TLS: true}) // for its certificate
	cmd := servers.Java(t, srv.CACertPEM(), "KclOptions.java")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &problems)
	}
	options, compared := map[string]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		f := strings.Split(lines.Text(), "\t")
		class, name, value := f[0], f[1], f[2]
		if slices.Contains(plumbing, name) {
			continue
		}
		options[name] = true
		is, there := told[name]
		if !there {
			t.Errorf("the page has no %s of %s, which is %s", name, class, value)
		}
		want, plain := spelled(value)
		if is == "" || !plain {
			continue
		}
		if compared[name] = true; is != want {
			t.Errorf("the page has the default %q for %s, and the KCL %q", is, name, want)
		}
	}
	if len(options) < 90 || len(compared) < 40 {
		t.Error("too few options were compared")
	}
	t.Logf("%d options of the KCL, %d with a default that was compared", len(options), len(compared))
}

// spelled returns a value of the KCL as the page spells it. It returns false for an object.
func spelled(value string) (string, bool) {
	switch value {
	case "true":
		return "on", true
	case "false":
		return "off", true
	case "2147483647", "1.7976931348623157E308":
		return "unlimited", true
	case "PT1M":
		return "60 s", true
	case "PT30S":
		return "30 s", true
	}
	if value == "0" || !number.MatchString(value) { // 0 can mean automatic
		return "", false
	}
	for i := len(value) - 3; i > 0 && !strings.Contains(value, "."); i -= 3 {
		value = value[:i] + "," + value[i:]
	}
	return value, true
}

var number = regexp.MustCompile(`^[0-9.]+$`)

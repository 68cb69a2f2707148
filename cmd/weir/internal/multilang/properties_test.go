package multilang

import (
	flags "flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
)

func TestPropertiesFilesAreReadAsInJava(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]entry{
		"a=b":                     {{"a", "b", 1}},
		"a : b\r\nc d":            {{"a", "b", 1}, {"c", "d", 2}},
		"# a=b\n ! c\n\n  d = e ": {{"d", "e", 4}},
		"a = b \\\n    c\nd=e":    {{"a", "b c", 1}, {"d", "e", 3}},
		`a = C:\\x\u0041\q\t.`:    {{"a", "C:\\xAq\t.", 1}},
		"a=1\nb=2\na=3":           {{"a", "3", 3}, {"b", "2", 2}},
		"a\\ b\\=c = = d":         {{"a b=c", "= d", 1}},
		"a=\xe4":                  {{"a", "ä", 1}},
		"\ufeffa=ä":               {{"a", "ä", 1}},
		"a":                       {{"a", "", 1}},
		`a=b\\` + "\nc=d":         {{"a", `b\`, 1}, {"c", "d", 2}},
		`a=x\`:                    {{"a", "x", 1}},
		"":                        nil,
	} {
		if got := parse([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

const least = "executableName = app.py\napplicationName = app\nstreamName = flights\n"

func settingsOf(t *testing.T, more string) *settings {
	t.Helper()
	s, err := read(parse([]byte(least + more)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPropertiesBecomeOptions(t *testing.T) {
	t.Parallel()
	s := settingsOf(t, `
streamArn = arn:aws:kinesis:us-east-5:000000000000:stream/other
initialPositionInStream = trim_horizon
AwsCredentialsProvider = ProfileCredentialsProvider|blue
regionName = eu-west-1
kinesisEndpoint = http://127.0.0.1:1
idleTimeBetweenReadsInMillis = 250
maxRecords = 500
failoverTimeMillis = 10000
shutdownGraceMillis = 0
timeoutInSeconds = 7
maxLeasesForWorker = 3
callProcessRecordsEvenForEmptyRecordList = yes
`)
	o := s.options
	if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "polled") {
		t.Errorf("warnings: %q", s.warnings)
	}
	if o.Streams[0] != "other" || o.App != "app" || o.Start != weir.Oldest || o.Polling.IdleInterval != 250*time.Millisecond ||
		o.Batching.MaxRecords != 500 || o.Timing.FailoverAfter != 10*time.Second || o.Timing.StopTimeout != time.Millisecond ||
		o.MaxLeases != 3 || o.FanOut.Mode != weir.FanOutOff || o.Aggregates != weir.UnpackOwn {
		t.Errorf("%+v", o)
	}
	if s.profile != "blue" || s.timeout != 7*time.Second || !s.empty || s.flags["region"] != "eu-west-1" || s.flags["endpoint"] != "http://127.0.0.1:1" {
		t.Errorf("%+v", s)
	}
	s = settingsOf(t, "")
	if o := s.options; o.Start != weir.Latest || o.FanOut.Mode != weir.FanOutRegister || o.Timing.StopTimeout != 5*time.Second || len(s.warnings) > 0 {
		t.Errorf("the defaults: %+v, %q", o, s.warnings)
	}
	s = settingsOf(t, "initialPositionInStreamExtended = 1700000000\ninitialPositionInStream = LATEST\nfanoutConfig.consumerArn = arn:x")
	if s.options.Start != weir.At(time.Unix(1700000000, 0)) || s.options.FanOut.ARNs[0] != "arn:x" {
		t.Errorf("%+v", s.options)
	}
}

func TestPropertiesThatAreNotUsedAreReported(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"tableName = leases":                       "line 4: tableName is not used: name the table in `--store dynamodb:TABLE`",
		"metricsLevel = none":                      "",
		"metricsLevel = DETAILED":                  "line 4: metricsLevel is not used: weir sends no metrics to CloudWatch",
		"InitialPositionInStream = LATEST":         "",
		"failoverTimeMilis = 10000":                "line 4: failoverTimeMilis is not a property of the MultiLangDaemon (did you mean failoverTimeMillis?); it is ignored",
		"zzz = 1":                                  "line 4: zzz is not a property of the MultiLangDaemon; it is ignored",
		"failoverTimeMillis = 100":                 "line 4: failoverTimeMillis = 100 is outside weir's limits; 3000 is used",
		"timeoutInSeconds = 0":                     "line 4: timeoutInSeconds = 0 is no limit: use 1 to 86400",
		"cleanupLeasesUponShardCompletion = false": "line 4: cleanupLeasesUponShardCompletion is not used",
		"tableName =":                              "",
	} {
		all := strings.Join(settingsOf(t, more).warnings, "; ")
		if want == "" && strings.Contains(all, "line 4") || !strings.HasPrefix(all, want) {
			t.Errorf("%s: %q", more, all)
		}
	}
}

func TestPropertiesThatCannotBeObeyedAreErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"applicationName = a\nstreamName = s":                     "executableName is missing in the properties file",
		least + "maxRecords = 10001":                              "line 4: maxRecords = 10001: it must be 1 to 10000",
		least + "maxRecords = many":                               "line 4: maxRecords = many: it is not a whole number",
		least + "retrievalMode = FAN_OUT":                         "line 4: retrievalMode = FAN_OUT: use DEFAULT, FANOUT or POLLING",
		least + "streamArn = flights":                             "line 4: streamArn = flights: it is not the ARN of a stream",
		least + "initialPositionInStream = AT_TIMESTAMP":          "line 4: initialPositionInStream = AT_TIMESTAMP: set initialPositionInStreamExtended to the time in seconds instead",
		least + "awsCredentialsProvider = com.example.MyProvider": "line 4: awsCredentialsProvider = com.example.MyProvider: weir cannot run the class MyProvider: use DefaultCredentialsProvider, which covers variables, profiles, web identities, containers and instances, or ProfileCredentialsProvider|NAME",
	} {
		if _, err := read(parse([]byte(text))); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each key of the table is known once.
func TestTheTableHasEachPropertyOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range properties {
		for _, k := range append([]string{p.key}, p.also...) {
			if seen[k] {
				t.Errorf("%s twice", k)
			}
			seen[k] = true
		}
		if (p.fate == unused) == (p.apply != nil) || p.text == "" {
			t.Errorf("%s: %s", p.key, p.fate)
		}
	}
}

var update = flags.Bool("update", false, "write the table of properties into docs/moving/multilang.md")

// The page about the MultiLangDaemon has the table of properties, as the code generates it.
func TestThePageHasTheTable(t *testing.T) {
	t.Parallel()
	const path = "../../../../docs/moving/multilang.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, table, has := strings.Cut(string(page), "| Property | weir | |\n")
	switch _, after, ends := strings.Cut(table, "\n\n"); {
	case !has:
		t.Error("the page has no table of properties")
	case *update && ends:
		err = os.WriteFile(path, []byte(before+Table()+"\n"+after), 0o600)
	case *update:
		err = os.WriteFile(path, []byte(before+Table()), 0o600)
	case !strings.Contains(string(page), Table()):
		t.Error("docs/moving/multilang.md has another table than the code: run this test with -update")
	}
	if err != nil {
		t.Error(err)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte(least + "timeoutInSeconds=9\\\n 9\n\\u00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = read(parse(text))
	})
}

func TestWeirTakesThePlaceOfJava(t *testing.T) {
	t.Parallel()
	const main = "software.amazon.kinesis.multilang.MultiLangDaemon"
	for line, want := range map[string]string{
		"-cp /x/a.jar:/etc/app " + main + " --properties-file app.properties --log-configuration l.xml": "multilang --properties /etc/app/app.properties --protocol kcl2",
		"-Xmx512m -cp a.jar " + main + " here.properties":                                               "multilang --properties here.properties --protocol kcl2",
		"-cp a com.amazonaws.services.kinesis.multilang.MultiLangDaemon here.properties":                "multilang --properties here.properties --protocol kcl1",
		main + " -p=here.properties":      "multilang --properties here.properties --protocol kcl2",
		"-cp a.jar " + main:               "",
		"consume --stream " + main + " x": "",
		"-version":                        "",
	} {
		got, _ := FromJava(strings.Fields(line), func(p string) bool { return p == "/etc/app/app.properties" || p == "here.properties" })
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

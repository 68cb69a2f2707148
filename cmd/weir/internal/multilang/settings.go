package multilang

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir"
)

// settings contains the options that result from a properties file.
type settings struct {
	options    weir.Options
	executable string
	stream     string
	timeout    time.Duration
	empty      bool              // the program also gets batches without records
	flags      map[string]string // values of flags that are not on the command line
	profile    string            // of the AWS configuration
	retrieval  string            // DEFAULT, FANOUT or POLLING
	polls      bool              // a property for polling is set
	consumer   string
	arn        string
	grace      *time.Duration
	extended   bool // initialPositionInStreamExtended is set

	warnings []string
}

// read returns the meaning of a file's properties. Properties that weir does not use become
// warnings. It returns an error for the first property that weir cannot obey.
func read(file []entry) (*settings, error) {
	s := &settings{flags: map[string]string{}, retrieval: "DEFAULT"}
	s.options.Start = weir.Latest // the KCL's default
	s.options.Aggregates = weir.UnpackOwn
	s.options.Batching = weir.Batching{MaxRecords: 10_000, MaxBytes: 10 << 20}
	s.options.ReuseBuffers = true
	for _, e := range file {
		p, ok := find(e.key)
		switch {
		case !ok:
			s.warn(e, "is not a property of the MultiLangDaemon%s; it is ignored", didYouMean(e.key))
			continue
		case p.fate == unused:
			if e.value != "" && !strings.EqualFold(e.value, p.usual) {
				s.warn(e, "is not used: %s", p.text)
			}
			continue
		case e.value == "" && p.key != "executableName" && p.key != "applicationName":
			continue
		}
		if err := p.apply(s, e); err != nil {
			return nil, fmt.Errorf("line %d: %s = %.140s: %w", e.line, e.key, e.value, err)
		}
	}
	return s, s.complete()
}

// complete checks what several properties mean together.
func (s *settings) complete() error {
	for _, missing := range []struct{ value, key string }{
		{s.executable, "executableName"}, {s.options.App, "applicationName"}, {s.stream, "streamName or streamArn"},
	} {
		if strings.TrimSpace(missing.value) == "" {
			return fmt.Errorf("%s is missing in the properties file", missing.key)
		}
	}
	s.options.Streams = []string{s.stream}
	fan := s.retrieval == "FANOUT" || s.retrieval == "DEFAULT" && !s.polls
	if fan {
		s.options.FanOut = weir.FanOut{Mode: weir.FanOutRegister, Name: s.consumer}
		if s.arn != "" {
			s.options.FanOut = weir.FanOut{ARNs: []string{s.arn}}
		}
	}
	if s.retrieval == "DEFAULT" && s.polls {
		s.warnings = append(s.warnings, "retrievalMode is not set, but a property for polling is: the stream is polled, as by the MultiLangDaemon")
	}
	s.options.Timing.StopTimeout = 5 * time.Second
	if s.grace != nil {
		s.options.Timing.StopTimeout = max(*s.grace, time.Millisecond)
	}
	if t := &s.options.Timing; t.FailoverAfter > 0 && t.HandoffTimeout == 0 {
		t.HandoffTimeout = max(30*time.Second, t.FailoverAfter)
	}
	return nil
}

func (s *settings) warn(e entry, format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf("line %d: %s ", e.line, e.key)+fmt.Sprintf(format, args...))
}

// number returns the value of an entry. Unlike in Java, where it would mean 0, a value that is no
// number is an error.
func number(e entry) (int64, error) {
	n, err := strconv.ParseInt(e.value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("it is not a whole number")
	}
	return n, nil
}

// span returns the duration of an entry in milliseconds, which must be between two limits of weir.
// A value beyond a limit becomes the limit, with a warning.
func (s *settings) span(e entry, least, most time.Duration) (time.Duration, error) {
	n, err := number(e)
	if err != nil {
		return 0, err
	}
	d := time.Duration(max(-1<<40, min(n, 1<<40))) * time.Millisecond
	if d < least || d > most {
		within := max(least, min(d, most))
		s.warn(e, "= %s is outside weir's limits; %d is used", e.value, within.Milliseconds())
		return within, nil
	}
	return d, nil
}

// truth returns the value of a boolean as the Java daemon reads it: anything that is not one of
// these words is false.
func truth(e entry) bool {
	switch strings.ToLower(e.value) {
	case "true", "yes", "y", "on", "1":
		return true
	}
	return false
}

// providers maps the value of awsCredentialsProvider. weir uses the default chain of the AWS SDK,
// which contains most providers of Java.
func (s *settings) providers(e entry) error {
	for provider := range strings.SplitSeq(e.value, ",") {
		parts := strings.Split(strings.TrimSpace(provider), "|")
		name := parts[0][strings.LastIndexByte(parts[0], '.')+1:]
		switch name {
		case "":
		case "DefaultCredentialsProvider", "DefaultAWSCredentialsProviderChain", "EnvironmentVariableCredentialsProvider",
			"InstanceProfileCredentialsProvider", "ContainerCredentialsProvider", "EC2ContainerCredentialsProviderWrapper",
			"WebIdentityTokenFileCredentialsProvider", "WebIdentityTokenCredentialsProvider",
			"SystemPropertyCredentialsProvider", "SystemPropertiesCredentialsProvider":
		case "ProfileCredentialsProvider":
			if len(parts) > 1 {
				s.profile = parts[1]
			}
		case "StsAssumeRoleCredentialsProvider", "KclStsAssumeRoleCredentialsProvider",
			"STSAssumeRoleSessionCredentialsProvider", "KclSTSAssumeRoleSessionCredentialsProvider":
			if len(parts) < 3 {
				return fmt.Errorf("write it like %s|ROLE_ARN|SESSION_NAME", name)
			}
			s.flags["role"], s.flags["role-session"] = parts[1], parts[2]
			for _, nested := range parts[3:] {
				k, v, _ := strings.Cut(nested, "=")
				if k != "externalId" {
					s.warn(e, "has %s for the role, which is not used: the AWS SDK finds the endpoint of STS", k)
					continue
				}
				s.flags["role-external-id"] = v
			}
		default:
			return fmt.Errorf("weir cannot run the class %.140s: use DefaultCredentialsProvider, which covers variables, "+
				"profiles, web identities, containers and instances, or ProfileCredentialsProvider|NAME", name)
		}
	}
	return nil
}

package stores

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/store/dynamostore"
)

// aboutTable is the help text about the settings of a DynamoDB table.
const aboutTable = `A DynamoDB URL may have settings, which apply only when the table is created:
?kms_key=KEY (an ARN, an ID or an alias; by default DynamoDB's own key),
&point_in_time_recovery=true, &deletion_protection=true,
&infrequent_access=true, &tag=KEY=VALUE (may be repeated), and
&read_capacity=N&write_capacity=N for provisioned capacity, which is billed by
the hour. A table that exists is not changed: settings that it does not have are
reported on standard error.`

// tableSettings contains the parameters of a DynamoDB URL.
var tableSettings = map[string]func(s *dynamostore.Settings, value string) error{
	"kms_key":                func(s *dynamostore.Settings, v string) error { s.KMSKey = v; return nil },
	"point_in_time_recovery": func(s *dynamostore.Settings, v string) error { return parseSwitch(&s.PointInTimeRecovery, v) },
	"deletion_protection":    func(s *dynamostore.Settings, v string) error { return parseSwitch(&s.DeletionProtection, v) },
	"infrequent_access":      func(s *dynamostore.Settings, v string) error { return parseSwitch(&s.InfrequentAccess, v) },
	"read_capacity":          func(s *dynamostore.Settings, v string) error { return parseUnits(&s.ReadCapacity, v) },
	"write_capacity":         func(s *dynamostore.Settings, v string) error { return parseUnits(&s.WriteCapacity, v) },
	"tag":                    func(s *dynamostore.Settings, v string) error { return (&cli.TagsFlag{To: &s.Tags}).Set(v) },
}

func parseSwitch(to *bool, v string) (err error) {
	if *to, err = strconv.ParseBool(v); err != nil {
		return fmt.Errorf("%.40q: want true or false", v)
	}
	return nil
}

func parseUnits(to *int64, v string) (err error) {
	if *to, err = strconv.ParseInt(v, 10, 64); err != nil || *to < 1 {
		return fmt.Errorf("%.40q: want a number of units from 1 on", v)
	}
	return nil
}

// parseTable parses s, which is a URL of DynamoDB. rest is the part after the colon.
func parseTable(from, s, rest string) (URL, error) {
	name, query, settled := strings.Cut(rest, "?")
	u := URL{Kind: Dynamo, name: name}
	if !TableForm.MatchString(name) {
		return u, cli.Usagef("%s %q: a DynamoDB table has 3 to 255 of a-z, A-Z, 0-9, _ . -, as in dynamodb:weir", from, redact.URL(s))
	}
	if !settled {
		return u, nil
	}
	given, err := url.ParseQuery(query)
	if err != nil {
		return u, cli.Usagef("%s %q: the settings after the question mark cannot be read: %v", from, redact.URL(s), err)
	}
	u.table = &dynamostore.Settings{}
	for _, key := range slices.Sorted(maps.Keys(given)) { // of several mistakes, always report the same one
		set, values := tableSettings[key], given[key]
		if set == nil {
			return u, cli.Usagef("%s %q: a DynamoDB table has no setting %q; it has %s", from, redact.URL(s), key, strings.Join(settingNames(), ", "))
		}
		if len(values) > 1 && key != "tag" {
			return u, cli.Usagef("%s %q: %s is given %d times", from, redact.URL(s), key, len(values))
		}
		for _, v := range values {
			if err := set(u.table, v); err != nil {
				return u, cli.Usagef("%s %q: %s %w", from, redact.URL(s), key, err)
			}
		}
	}
	if err := u.table.Check(); err != nil {
		return u, cli.Usagef("%s %q: %s", from, redact.URL(s), settingWords.Replace(err.Error()))
	}
	return u, nil
}

// settingWords replaces the names of a table's settings by the parameters of its URL.
var settingWords = strings.NewReplacer("dynamostore: ", "", "Settings.ReadCapacity", "read_capacity", "WriteCapacity", "write_capacity",
	"Settings.KMSKey", "kms_key", "Settings.Tags", "tag", "both be 0 for", "neither for", "both 0 for", "neither for", "\n", "; ")

func settingNames() []string { return slices.Sorted(maps.Keys(tableSettings)) }

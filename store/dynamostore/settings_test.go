package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// all contains a value for each setting.
var all = Settings{
	ReadCapacity: 5, WriteCapacity: 7, KMSKey: "arn:aws:kms:eu-central-1:123456789012:key/1234", PointInTimeRecovery: true, DeletionProtection: true,
	InfrequentAccess: true, Tags: map[string]string{"team": "billing", "it's": "${x} \"y\""},
}

// tables is a DynamoDB that creates a table slowly and records requests.
type tables struct {
	asked   []string
	created map[string]any
	looks   int
	backups int // number of requests about recovery
	denied  string
}

func (d *tables) answer(_ context.Context, operation string, body map[string]any) (int, string) {
	d.asked = append(d.asked, operation)
	if operation == d.denied {
		return 400, refusal("AccessDeniedException")
	}
	switch operation {
	case "DescribeTable":
		if d.created == nil {
			return 400, refusal("ResourceNotFoundException")
		}
		status := "CREATING"
		if d.looks++; d.looks > 2 {
			status = "ACTIVE"
		}
		return 200, fmt.Sprintf(`{"Table":{"TableName":"weir","TableArn":"arn:t","TableStatus":%q,
			"AttributeDefinitions":[{"AttributeName":"app","AttributeType":"S"},{"AttributeName":"row","AttributeType":"S"}],
			"KeySchema":[{"AttributeName":"app","KeyType":"HASH"},{"AttributeName":"row","KeyType":"RANGE"}]}}`, status)
	case "CreateTable":
		d.created = body
		return 200, `{"TableDescription":{}}`
	case "UpdateContinuousBackups":
		if d.backups++; d.backups < 3 {
			return 400, refusal("ContinuousBackupsUnavailableException")
		}
		return 200, `{}`
	case "DescribeContinuousBackups":
		return 200, `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED","PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":"DISABLED"}}}`
	case "ListTagsOfResource":
		if body["NextToken"] == nil {
			return 200, `{"Tags":[{"Key":"team","Value":"other"}],"NextToken":"more"}`
		}
		return 200, `{"Tags":[{"Key":"stage","Value":"test"}]}`
	}
	return 500, refusal("InternalServerError")
}

func (d *tables) store(s Settings) *Store {
	st := server(d.answer).store("weir")
	st.settings = s
	return st
}

func TestATableIsMadeWithItsSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tables{}
		if err := d.store(all).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintln(d.created["BillingMode"], d.created["ProvisionedThroughput"], d.created["SSESpecification"], d.created["DeletionProtectionEnabled"], d.created["TableClass"], d.created["Tags"])
		want := "PROVISIONED map[ReadCapacityUnits:5 WriteCapacityUnits:7] map[Enabled:true KMSMasterKeyId:" + all.KMSKey + " SSEType:KMS] true STANDARD_INFREQUENT_ACCESS " +
			`[map[Key:it's Value:${x} "y"] map[Key:team Value:billing]]`
		if got != want+"\n" {
			t.Errorf("it asked for %s, want %s", got, want)
		}
		if d.backups != 3 {
			t.Errorf("recovery was asked for %d times", d.backups)
		}
	})
}

func TestATableWithoutSettingsIsBilledPerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tables{}
		if err := d.store(Settings{}).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"ProvisionedThroughput", "SSESpecification", "DeletionProtectionEnabled", "TableClass", "Tags"} {
			if d.created[field] != nil {
				t.Errorf("%s is %v", field, d.created[field])
			}
		}
		if d.created["BillingMode"] != "PAY_PER_REQUEST" || d.backups != 0 {
			t.Errorf("it asked for %v, and %d times for recovery", d.created, d.backups)
		}
	})
}

// Migrate does not change an existing table, and Differences returns how it differs from the
// settings.
func TestATableThatExistsIsLeftAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tables{created: map[string]any{}, looks: 10}
		st := d.store(all)
		if err := st.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(d.asked, "CreateTable") || d.backups != 0 {
			t.Errorf("it asked for %q", d.asked)
		}
		told, err := st.Differences(t.Context())
		if err != nil || len(told) != 7 {
			t.Errorf("%q, %v", told, err)
		}
		d.asked = nil
		if told, err = d.store(Settings{}).Differences(t.Context()); err != nil || len(told) != 0 || len(d.asked) != 1 {
			t.Errorf("without settings: %q, %v, after %q", told, err, d.asked)
		}
	})
}

func TestWhatIsNotAllowedIsNamed(t *testing.T) {
	for denied, want := range map[string]string{
		"CreateTable": "dynamodb:TagResource", "UpdateContinuousBackups": "dynamodb:UpdateContinuousBackups",
		"DescribeContinuousBackups": "dynamodb:DescribeContinuousBackups", "ListTagsOfResource": "dynamodb:ListTagsOfResource",
	} {
		synctest.Test(t, func(t *testing.T) {
			st := (&tables{denied: denied}).store(all)
			err := st.Migrate(t.Context())
			if err == nil {
				_, err = st.Differences(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "a worker needs") {
				t.Errorf("%s: %v", denied, err)
			}
		})
	}
}

func TestWhatATableHasNot(t *testing.T) {
	full := made{recovery: true, tags: all.Tags, table: types.TableDescription{
		BillingModeSummary:    &types.BillingModeSummary{BillingMode: types.BillingModeProvisioned},
		ProvisionedThroughput: &types.ProvisionedThroughputDescription{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(7)},
		SSEDescription:        &types.SSEDescription{Status: types.SSEStatusEnabled, KMSMasterKeyArn: aws.String(all.KMSKey)},
		TableClassSummary:     &types.TableClassSummary{TableClass: types.TableClassStandardInfrequentAccess}, DeletionProtectionEnabled: aws.Bool(true),
	}}
	for name, c := range map[string]struct {
		want   Settings
		change func(*made)
		told   []string
	}{
		"nothing":                 {want: all},
		"nothing was requested":   {},
		"billing":                 {all, func(m *made) { m.table.BillingModeSummary.BillingMode = types.BillingModePayPerRequest }, []string{"it is billed per request, not for 5 read and 7 write units a second"}},
		"capacity":                {all, func(m *made) { m.table.ProvisionedThroughput.ReadCapacityUnits = aws.Int64(6) }, []string{"it has 6 read and 7 write units a second, not 5 and 7"}},
		"encryption":              {all, func(m *made) { m.table.SSEDescription = nil }, []string{"it is encrypted with DynamoDB's own key, not with " + all.KMSKey}},
		"another key":             {all, func(m *made) { m.table.SSEDescription.KMSMasterKeyArn = aws.String("arn:x/5") }, []string{"it is encrypted with the key arn:x/5, not with " + all.KMSKey}},
		"the key by its ID":       {want: Settings{KMSKey: "1234"}},
		"an alias may be any key": {want: Settings{KMSKey: "alias/orders"}},
		"recovery":                {all, func(m *made) { m.recovery = false }, []string{"it has no point-in-time recovery"}},
		"protection":              {all, func(m *made) { m.table.DeletionProtectionEnabled = nil }, []string{"it is not protected from being deleted"}},
		"class":                   {all, func(m *made) { m.table.TableClassSummary = nil }, []string{"it is not of the class for infrequent access"}},
		"tags":                    {all, func(m *made) { m.tags = map[string]string{"team": "x"} }, []string{`it has no tag "it's"`, `its tag "team" is "x", not "billing"`}},
	} {
		m := full
		billing, capacity, sse := *full.table.BillingModeSummary, *full.table.ProvisionedThroughput, *full.table.SSEDescription
		m.table.BillingModeSummary, m.table.ProvisionedThroughput, m.table.SSEDescription = &billing, &capacity, &sse
		if c.change != nil {
			c.change(&m)
		}
		if got := c.want.differences(m); !slices.Equal(got, c.told) {
			t.Errorf("%s: %q, want %q", name, got, c.told)
		}
	}
}

func TestWrongSettingsAreRefusedAtOnce(t *testing.T) {
	for want, s := range map[string]Settings{
		"must both be given":       {ReadCapacity: 5},
		"must be 1 or more":        {ReadCapacity: -1, WriteCapacity: 1},
		"is not a key":             {KMSKey: "a key"},
		"a tag without a key":      {Tags: map[string]string{"": "x"}},
		"AWS's own":                {Tags: map[string]string{"aws:x": "x"}},
		"more than 128 characters": {Tags: map[string]string{strings.Repeat("k", 129): "x"}},
		"more than 256 characters": {Tags: map[string]string{"k": strings.Repeat("v", 257)}},
	} {
		d := &tables{}
		if err := d.store(s).Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), want) || len(d.asked) > 0 {
			t.Errorf("%s: %v, after %q", want, err, d.asked)
		}
	}
}

// The definitions contain every setting, correctly quoted.
func TestDefinitionsHaveTheSettings(t *testing.T) {
	cli, rest, _ := strings.Cut(all.Definitions("weir"), "With Terraform:")
	terraform, cloudFormation, _ := strings.Cut(rest, "With CloudFormation:")
	for text, want := range map[string][]string{
		cli: {"PROVISIONED", "ReadCapacityUnits=5,WriteCapacityUnits=7", "'Enabled=true,SSEType=KMS,KMSMasterKeyId=" + all.KMSKey + "'", "--deletion-protection-enabled",
			"STANDARD_INFREQUENT_ACCESS", `--tags '[{"Key":"it'\''s","Value":"${x} \"y\""},{"Key":"team","Value":"billing"}]'`, "update-continuous-backups"},
		terraform: {"PROVISIONED", "read_capacity  = 5", "write_capacity = 7", `kms_key_arn = "` + all.KMSKey, "deletion_protection_enabled = true",
			"STANDARD_INFREQUENT_ACCESS", `"it's" = "$${x} \"y\""`, "point_in_time_recovery {"},
		cloudFormation: {"PROVISIONED", "{ReadCapacityUnits: 5, WriteCapacityUnits: 7}", `KMSMasterKeyId: "` + all.KMSKey, "DeletionProtectionEnabled: true",
			"TableClass: STANDARD_INFREQUENT_ACCESS", `{Key: "it's", Value: "${x} \"y\""}`, "PointInTimeRecoveryEnabled: true"},
	} {
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not in\n%s", w, text)
			}
		}
	}
	if plain := Definitions("weir"); strings.Contains(plain, "tags") || strings.Contains(plain, "KMS") || !strings.Contains(plain, "PAY_PER_REQUEST") {
		t.Errorf("without settings:\n%s", plain)
	}
}

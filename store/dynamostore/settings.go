package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/lease"
)

// Settings configure a table that [Store.Migrate] creates. Migrate does not change an
// existing table. [Store.Differences] lists how an existing table differs. With the zero Settings,
// the table is billed per request and encrypted with DynamoDB's default key.
type Settings struct {
	// ReadCapacity and WriteCapacity are provisioned units per second. They are charged even if
	// they are not used. Set both or neither. docs/stores.md has the consumption of a worker. With
	// less capacity, heartbeats are throttled. By default the table is billed per request.
	ReadCapacity, WriteCapacity int64
	// KMSKey is the AWS KMS key that encrypts the table: an ARN, an ID or an alias such as
	// "alias/aws/dynamodb". The default is DynamoDB's key, which costs nothing.
	KMSKey string
	// PointInTimeRecovery keeps all states of the table from the last 35 days.
	PointInTimeRecovery bool
	// DeletionProtection makes DynamoDB refuse to delete the table.
	DeletionProtection bool
	// InfrequentAccess selects the table class with cheaper storage and more expensive requests.
	// Requests cause nearly all of the cost of a table of leases.
	InfrequentAccess bool
	// Tags are the table's tags. There can be at most 50.
	Tags map[string]string
}

// awsKey is the key that DynamoDB uses if KMS is requested without a key.
const awsKey = "alias/aws/dynamodb"

// Check returns all problems of the settings. [Store.Migrate] calls it.
func (s Settings) Check() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("dynamostore: "+format, args...))
	}
	const most = 1_000_000_000
	if s.ReadCapacity < 0 || s.WriteCapacity < 0 || s.ReadCapacity > most || s.WriteCapacity > most {
		bad("Settings.ReadCapacity %d and WriteCapacity %d must be 1 or more, or both 0 for billing per request", s.ReadCapacity, s.WriteCapacity)
	} else if (s.ReadCapacity == 0) != (s.WriteCapacity == 0) {
		bad("Settings.ReadCapacity %d and WriteCapacity %d must both be given, or both be 0 for billing per request", s.ReadCapacity, s.WriteCapacity)
	}
	if len(s.KMSKey) > 2048 || strings.ContainsFunc(s.KMSKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		bad("Settings.KMSKey %.200q is not a key: give an ARN, an ID or an alias such as "+awsKey, s.KMSKey)
	}
	if len(s.Tags) > 50 {
		bad("Settings.Tags has %d tags, a table may have 50", len(s.Tags))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		switch value := s.Tags[key]; {
		case key == "":
			bad("Settings.Tags has a tag without a key")
		case len([]rune(key)) > 128:
			bad("Settings.Tags has the key %.140q of more than 128 characters", key)
		case len([]rune(value)) > 256:
			bad("Settings.Tags has a value of %q of more than 256 characters", key)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			bad("Settings.Tags has the key %q, which begins with aws:, AWS's own", key)
		}
	}
	return errors.Join(problems...)
}

// apply adds the settings to a request that creates the table. It omits recovery, which is set
// after the table was created.
func (s Settings) apply(in *dynamodb.CreateTableInput) {
	in.BillingMode = types.BillingModePayPerRequest
	if s.ReadCapacity > 0 {
		in.BillingMode = types.BillingModeProvisioned
		in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: &s.ReadCapacity, WriteCapacityUnits: &s.WriteCapacity}
	}
	if s.KMSKey != "" {
		in.SSESpecification = &types.SSESpecification{Enabled: aws.Bool(true), SSEType: types.SSETypeKms}
		if s.KMSKey != awsKey {
			in.SSESpecification.KMSMasterKeyId = &s.KMSKey
		}
	}
	if s.DeletionProtection {
		in.DeletionProtectionEnabled = aws.Bool(true)
	}
	if s.InfrequentAccess {
		in.TableClass = types.TableClassStandardInfrequentAccess
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(s.Tags[key])})
	}
}

// made contains the known settings of a table.
type made struct {
	table    types.TableDescription
	recovery bool
	tags     map[string]string
}

// differences returns one sentence for each difference between a table and the settings. It does
// not compare a setting that has its default.
func (s Settings) differences(m made) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.ReadCapacity > 0 {
		perRequest := m.table.BillingModeSummary != nil && m.table.BillingModeSummary.BillingMode == types.BillingModePayPerRequest
		var read, write int64
		if p := m.table.ProvisionedThroughput; p != nil {
			read, write = aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits)
		}
		switch {
		case perRequest:
			add("it is billed per request, not for %d read and %d write units a second", s.ReadCapacity, s.WriteCapacity)
		case read != s.ReadCapacity || write != s.WriteCapacity:
			add("it has %d read and %d write units a second, not %d and %d", read, write, s.ReadCapacity, s.WriteCapacity)
		}
	}
	if s.KMSKey != "" {
		switch d := m.table.SSEDescription; {
		case d == nil || d.Status != types.SSEStatusEnabled && d.Status != types.SSEStatusEnabling && d.Status != types.SSEStatusUpdating:
			add("it is encrypted with DynamoDB's own key, not with %s", s.KMSKey)
		case otherKey(s.KMSKey, aws.ToString(d.KMSMasterKeyArn)):
			add("it is encrypted with the key %s, not with %s", aws.ToString(d.KMSMasterKeyArn), s.KMSKey)
		}
	}
	if s.PointInTimeRecovery && !m.recovery {
		add("it has no point-in-time recovery")
	}
	if s.DeletionProtection && !aws.ToBool(m.table.DeletionProtectionEnabled) {
		add("it is not protected from being deleted")
	}
	if c := m.table.TableClassSummary; s.InfrequentAccess && (c == nil || c.TableClass != types.TableClassStandardInfrequentAccess) {
		add("it is not of the class for infrequent access")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		switch value, there := m.tags[key]; {
		case !there:
			add("it has no tag %q", key)
		case value != s.Tags[key]:
			add("its tag %q is %q, not %q", key, value, s.Tags[key])
		}
	}
	return all
}

// otherKey reports whether a requested key certainly differs from the key with the given ARN. An
// alias can refer to any key.
func otherKey(want, arn string) bool {
	if strings.HasPrefix(want, "alias/") || strings.Contains(want, ":alias/") {
		return false
	}
	return want != arn && !strings.HasSuffix(arn, "/"+want)
}

const (
	askingRecovery = "ask for the table's recovery"
	startRecovery  = "start the table's recovery"
	askingTags     = "ask for the table's tags"
)

// Differences returns one sentence for each difference between the table and Options.Settings. The
// table may have been created earlier or by other means. Differences needs dynamodb:DescribeTable.
// If recovery or tags are set, it also needs dynamodb:DescribeContinuousBackups and
// dynamodb:ListTagsOfResource.
func (s *Store) Differences(ctx context.Context) ([]string, error) {
	ctx, cancel, err := s.begin(ctx, "any")
	if err != nil {
		return nil, err
	}
	defer cancel()
	table, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	m, want := made{table: *table}, s.settings
	var untold []string
	if want.PointInTimeRecovery {
		if m.recovery, err = s.recovers(ctx); unserved(err) {
			untold = append(untold, "this server does not say whether it has point-in-time recovery")
			want.PointInTimeRecovery = false
		} else if err != nil {
			return nil, err
		}
	}
	if len(want.Tags) > 0 {
		if m.tags, err = s.tags(ctx, aws.ToString(table.TableArn)); unserved(err) {
			untold = append(untold, "this server does not say which tags it has")
			want.Tags = nil
		} else if err != nil {
			return nil, err
		}
	}
	return append(want.differences(m), untold...), nil
}

// unserved reports whether err means that the server does not support the operation. DynamoDB Local
// supports neither recovery nor tags.
func unserved(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && answer.ErrorCode() == "UnknownOperationException"
}

func (s *Store) recovers(ctx context.Context) (bool, error) {
	out, err := call(ctx, s, askingRecovery, &dynamodb.DescribeContinuousBackupsInput{TableName: &s.table}, s.client.DescribeContinuousBackups)
	if err != nil {
		return false, err
	}
	d := out.ContinuousBackupsDescription
	return d != nil && d.PointInTimeRecoveryDescription != nil && d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled, nil
}

func (s *Store) tags(ctx context.Context, table string) (map[string]string, error) {
	tags := map[string]string{}
	in := &dynamodb.ListTagsOfResourceInput{ResourceArn: &table}
	for range 50 { // a page has at least one tag
		out, err := call(ctx, s, askingTags, in, s.client.ListTagsOfResource)
		if err != nil {
			return nil, err
		}
		for _, tag := range out.Tags {
			tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	return tags, nil
}

// startRecovery starts point-in-time recovery of a new table. DynamoDB refuses this for the first
// seconds. startRecovery reports whether to retry.
func (s *Store) startRecovery(ctx context.Context) (again bool, err error) {
	_, err = call(ctx, s, startRecovery, &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        &s.table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	}, s.client.UpdateContinuousBackups)
	var soon *types.ContinuousBackupsUnavailableException
	return errors.As(err, &soon), err
}

// needed maps calls to the permissions that they need in addition to a worker's policy.
var needed = map[string]string{
	askingRecovery: "dynamodb:DescribeContinuousBackups", startRecovery: "dynamodb:UpdateContinuousBackups", askingTags: "dynamodb:ListTagsOfResource",
}

// explainSettings returns an error that names the missing permission of a call. It returns nil for
// calls that are not in needed.
func (s *Store) explainSettings(what string, err error) error {
	if action := needed[what]; action != "" {
		return fmt.Errorf("dynamostore: %w: %s: on table %s that is not allowed; it needs %s (%w)", lease.ErrSetup, what, s.name(), action, err)
	}
	return nil
}

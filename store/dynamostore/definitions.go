package dynamostore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Definitions shows how to create a table without [Store.Migrate], with the AWS command line,
// Terraform and CloudFormation. table is its name. The settings are the zero [Settings].
func Definitions(table string) string { return Settings{}.Definitions(table) }

// Definitions is like the function [Definitions], for a table with these settings.
func (s Settings) Definitions(table string) string {
	return "With the AWS command line:\n\n" + s.awsCLI(table) +
		"\nWith Terraform:\n\n" + s.terraform(table) +
		"\nWith CloudFormation:\n\n" + strings.TrimSuffix(s.cloudFormation(table), "\n")
}

func (s Settings) billing() string {
	if s.ReadCapacity > 0 {
		return "PROVISIONED"
	}
	return "PAY_PER_REQUEST"
}

func (s Settings) awsCLI(table string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  aws dynamodb create-table --table-name %s --billing-mode %s", table, s.billing())
	more := func(format string, args ...any) { fmt.Fprintf(&b, " \\\n    "+format, args...) }
	if s.ReadCapacity > 0 {
		more("--provisioned-throughput ReadCapacityUnits=%d,WriteCapacityUnits=%d", s.ReadCapacity, s.WriteCapacity)
	}
	more("--attribute-definitions AttributeName=app,AttributeType=S AttributeName=row,AttributeType=S")
	more("--key-schema AttributeName=app,KeyType=HASH AttributeName=row,KeyType=RANGE")
	switch s.KMSKey {
	case "":
	case awsKey:
		more("--sse-specification Enabled=true,SSEType=KMS")
	default:
		more("--sse-specification %s", shell("Enabled=true,SSEType=KMS,KMSMasterKeyId="+s.KMSKey))
	}
	if s.DeletionProtection {
		more("--deletion-protection-enabled")
	}
	if s.InfrequentAccess {
		more("--table-class STANDARD_INFREQUENT_ACCESS")
	}
	if len(s.Tags) > 0 {
		type tag struct{ Key, Value string }
		var all []tag
		for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
			all = append(all, tag{key, s.Tags[key]})
		}
		more("--tags %s", shell(asJSON(all)))
	}
	if s.PointInTimeRecovery {
		fmt.Fprintf(&b, "\n  aws dynamodb wait table-exists --table-name %s", table)
		fmt.Fprintf(&b, "\n  aws dynamodb update-continuous-backups --table-name %s \\\n"+
			"    --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true", table)
	}
	return b.String() + "\n"
}

func (s Settings) terraform(table string) string {
	lines := []string{
		`resource "aws_dynamodb_table" "weir" {`,
		`  name         = "` + table + `"`,
		`  billing_mode = "` + s.billing() + `"`,
	}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf("  "+format, args...)) }
	if s.ReadCapacity > 0 {
		add("read_capacity  = %d", s.ReadCapacity)
		add("write_capacity = %d", s.WriteCapacity)
	}
	lines = append(lines,
		`  hash_key     = "app"`, `  range_key    = "row"`,
		"  attribute {", `    name = "app"`, `    type = "S"`, "  }",
		"  attribute {", `    name = "row"`, `    type = "S"`, "  }")
	switch s.KMSKey {
	case "":
	case awsKey:
		add("server_side_encryption {\n    enabled = true\n  }")
	default:
		add("server_side_encryption {\n    enabled     = true\n    kms_key_arn = %s # the key's ARN\n  }", hcl(s.KMSKey))
	}
	if s.PointInTimeRecovery {
		add("point_in_time_recovery {\n    enabled = true\n  }")
	}
	if s.DeletionProtection {
		add("deletion_protection_enabled = true")
	}
	if s.InfrequentAccess {
		add(`table_class = "STANDARD_INFREQUENT_ACCESS"`)
	}
	if len(s.Tags) > 0 {
		add("tags = {")
		for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
			add("  %s = %s", hcl(key), hcl(s.Tags[key]))
		}
		add("}")
	}
	return indent(append(lines, "}"), "  ")
}

func (s Settings) cloudFormation(table string) string {
	lines := []string{
		"Resources:",
		"  Weir:",
		"    Type: AWS::DynamoDB::Table",
		"    Properties:",
		"      TableName: " + table,
		"      BillingMode: " + s.billing(),
	}
	add := func(format string, args ...any) { lines = append(lines, "      "+fmt.Sprintf(format, args...)) }
	if s.ReadCapacity > 0 {
		add("ProvisionedThroughput: {ReadCapacityUnits: %d, WriteCapacityUnits: %d}", s.ReadCapacity, s.WriteCapacity)
	}
	add("AttributeDefinitions:")
	add("  - {AttributeName: app, AttributeType: S}")
	add("  - {AttributeName: row, AttributeType: S}")
	add("KeySchema:")
	add("  - {AttributeName: app, KeyType: HASH}")
	add("  - {AttributeName: row, KeyType: RANGE}")
	switch s.KMSKey {
	case "":
	case awsKey:
		add("SSESpecification: {SSEEnabled: true, SSEType: KMS}")
	default:
		add("SSESpecification: {SSEEnabled: true, SSEType: KMS, KMSMasterKeyId: %s}", asJSON(s.KMSKey))
	}
	if s.PointInTimeRecovery {
		add("PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}")
	}
	if s.DeletionProtection {
		add("DeletionProtectionEnabled: true")
	}
	if s.InfrequentAccess {
		add("TableClass: STANDARD_INFREQUENT_ACCESS")
	}
	if len(s.Tags) > 0 {
		add("Tags:")
		for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
			add("  - {Key: %s, Value: %s}", asJSON(key), asJSON(s.Tags[key]))
		}
	}
	return indent(lines, "  ")
}

func indent(lines []string, by string) string {
	return by + strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n"+by) + "\n"
}

// asJSON encodes a value as JSON, which is also valid YAML.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // never happens, because texts can always be encoded
		return "null"
	}
	return string(b)
}

// shell quotes a text as one shell word.
func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// hcl quotes a text for Terraform and escapes its templates.
func hcl(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(asJSON(s))
}

package stores

import (
	"errors"
	"reflect"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/store/dynamostore"
)

func TestParseStore(t *testing.T) {
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/weir"
	for s, want := range map[string]URL{
		"memory:":             {Kind: Memory, name: ""},
		"sqlite:a.db":         {Kind: SQLite, name: "a.db"},
		"sqlite:/var/lib/a:b": {Kind: SQLite, name: "/var/lib/a:b"},
		"dynamodb:weir":       {Kind: Dynamo, name: "weir"},
		"postgres://a@b/c":    {Kind: Server, name: "postgres://a@b/c"},
		"mysql://a@b/c":       {Kind: Server, name: "mysql://a@b/c"},
		"redis://b":           {Kind: Server, name: "redis://b"},
		"dynamodb:" + arn:     {Kind: Dynamo, name: arn},
	} {
		if got, err := Parse(s); err != nil || got != want {
			t.Errorf("%s is %v, %v", s, got, err)
		}
	}
	u, err := Parse("dynamodb:weir?kms_key=alias/weir&tag=team=a=b&tag=stage=test&point_in_time_recovery=true&deletion_protection=1&infrequent_access=true&read_capacity=5&write_capacity=7")
	want := dynamostore.Settings{
		ReadCapacity: 5, WriteCapacity: 7, KMSKey: "alias/weir", PointInTimeRecovery: true, DeletionProtection: true, InfrequentAccess: true,
		Tags: map[string]string{"team": "a=b", "stage": "test"},
	}
	if err != nil || u.name != "weir" || !reflect.DeepEqual(u.settings(), want) {
		t.Errorf("with settings: %+v, %+v, %v", u, u.settings(), err)
	}
	if n := reflect.TypeFor[dynamostore.Settings]().NumField(); n != len(tableSettings) {
		t.Errorf("a table has %d settings and its URL %d", n, len(tableSettings))
	}
	for _, s := range []string{"", "memory", "memory:x", "sqlite", "sqlite:", "dynamodb:", "dynamodb:a b", "postgres://x", "postgres:x", "redis:", "redis://", "oracle://a/b", ":", "Sqlite:x"} {
		var usage cli.UsageError
		if got, err := Parse(s); !errors.As(err, &usage) {
			t.Errorf("%q is %v, %v, want a wrong usage", s, got, err)
		}
	}
}

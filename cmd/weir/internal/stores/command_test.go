package stores

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestATableIsPrintedForOtherTools(t *testing.T) {
	for _, table := range []string{"mine", "arn:aws:dynamodb:eu-west-1:123456789012:table/mine"} {
		text := clitest.MustRun(t, "", "store", "create", "--store=dynamodb:"+table, "--print")
		for _, want := range []string{"create-table --table-name mine ", `name         = "mine"`, "TableName: mine\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", table, want, text)
			}
		}
	}
	for want, args := range map[string]string{
		"no versions":                  "--store=dynamodb:mine --since=1",
		"Postgres, MySQL and DynamoDB": "--store=sqlite:a.db",
	} {
		if _, said := clitest.MustExit(t, cli.ExitUsage, append([]string{"store", "create", "--print"}, strings.Fields(args)...)...); !strings.Contains(said, want) {
			t.Errorf("%s: %s", args, said)
		}
	}
}

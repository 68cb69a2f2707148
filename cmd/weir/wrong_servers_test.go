package main

import (
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/internal/proof/wronginput"
)

// wrongServers returns inputs whose endpoint is invalid or does not answer as expected.
func wrongServers(p *wrongPlace) []wronginput.Input {
	t := p.t
	gone := clitest.UnusedAddr(t)
	tail := func(endpoint string) string { return "tail --stream s --endpoint " + endpoint }
	return under("endpoint",
		misused("no URL", tail("here"), `--endpoint "here"`, "http://127.0.0.1:4567"),
		misused("another protocol", tail("ftp://127.0.0.1"), "http://127.0.0.1:4567"),
		misused("a URL with a user", tail("http://u:"+wronginput.Secret+"@127.0.0.1:1"), "signed with the AWS credentials"),
		misused("a URL with a query", tail("http://127.0.0.1:1/?a=b"), "http://127.0.0.1:4567"),
		fails("nobody behind tail", tail(gone), "nothing answers at "+gone, "endpoint"),
		fails("nobody behind put", "put --stream s --endpoint "+gone+" "+p.records, "nothing answers at "+gone),
		withLines(fails("nobody behind consume", "consume --stream s --app a --store memory: --endpoint "+gone, "nothing answers at "+gone), 2),
		fails("nobody behind fanout", "fanout list --stream s --endpoint "+gone, "nothing answers at "+gone),
		fails("nobody behind reset", "group reset --app a --stream s --to oldest --yes "+p.store+" --endpoint "+gone, "nothing answers at "+gone),
		fails("a host that is not there", tail("http://nowhere..invalid:4567"), "nowhere..invalid", "cannot be found"),
	)
}

func withLines(in wronginput.Input, lines int) wronginput.Input {
	in.Lines = lines
	return in
}

// wrongStores returns inputs whose store does not exist or refuses calls.
func wrongStores(p *wrongPlace) []wronginput.Input {
	t := p.t
	port := strings.TrimPrefix(clitest.UnusedAddr(t), "http://")
	list := func(url string) string { return "group list --store " + url }
	inputs := []wronginput.Input{
		fails("no DynamoDB", "group describe --app a --store dynamodb:weir --dynamodb-endpoint http://"+port, "nothing answers at http://"+port),
		fails("a DynamoDB without the table", "group describe --app a --store dynamodb:weir --dynamodb-endpoint "+
			clitest.Answering(t, 400, "ResourceNotFoundException", "Requested resource not found"), "there is no DynamoDB table weir", "weir store create"),
		withLines(fails("a DynamoDB that gives no right", "group describe --app a --store dynamodb:weir --dynamodb-endpoint "+
			// The error contains a policy to copy.
			clitest.Answering(t, 400, "AccessDeniedException", "User: arn:aws:iam::1:user/x is not authorized"), "is not allowed", "dynamodb:UpdateItem"), 20),
		fails("a database on a host that is not there", list("postgres://u@nowhere..invalid/d"), "nowhere..invalid", "--store"),
	}
	for _, scheme := range []string{"postgres", "mysql", "redis"} {
		at := func(addr string) string { return list(scheme + "://u:" + wronginput.Secret + "@" + addr + "/0") }
		inputs = append(inputs,
			fails(scheme+": nobody", at(port), "nothing answers at "+port, scheme+"://u:xxxxx@"+port),
		)
	}
	return under("store", inputs...)
}

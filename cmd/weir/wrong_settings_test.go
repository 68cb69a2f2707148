package main

import (
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/internal/proof/wronginput"
)

// away is an endpoint on another machine, so a command needs credentials and a region. The name is
// invalid, so it is not looked up in DNS.
const away = "--endpoint http://kinesis..invalid:4567"

// wrongSettings returns inputs with wrong credentials, regions, profiles, certificates, clocks and
// proxies.
func wrongSettings(p *wrongPlace) []wronginput.Input {
	t := p.t
	tail := "tail --stream s "
	refusing := func(status int, code, message string) string {
		return tail + "--endpoint " + clitest.Answering(t, status, code, message)
	}
	const signed = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method."
	const skewed = "Signature expired: 20260101T000000Z is now earlier than 20260101T115500Z (20260101T120000Z - 5 min.)"
	const early = "Signature not yet current: 20260101T130000Z is still later than 20260101T120500Z (20260101T120000Z + 5 min.)"
	dead := clitest.UnusedAddr(t)
	none := []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="}
	config := p.file("config", "[profile half]\nregion = eu-west-1\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = nobody\n")
	broken := p.file("broken", "[profile broken\nregion\n")
	return under("settings",
		with(fails("no credentials", tail+away, "no usable AWS credentials", "AWS_PROFILE"), none...),
		with(fails("no region", tail+away, "no AWS region is set", "--region"), "AWS_REGION="),
		with(fails("half a key", tail+away, "AWS_SECRET_ACCESS_KEY"), "AWS_SECRET_ACCESS_KEY="),
		fails("a region that is none", tail+"--region Europe "+away, `"Europe" is not an AWS region`, "eu-west-1"),
		with(fails("a region in the environment that is none", tail+away, `"eu_west 1" is not an AWS region`), "AWS_REGION=eu_west 1"),
		with(fails("a profile that is not there", tail+away, "AWS_PROFILE", "nosuch"), "AWS_PROFILE=nosuch", "AWS_CONFIG_FILE="+config),
		with(fails("a profile that borrows from one that is not there", tail+away, "AWS_PROFILE", "nobody"),
			append(none, "AWS_PROFILE=half", "AWS_CONFIG_FILE="+config)...),
		with(fails("a configuration file that is damaged", tail+away, "AWS"), "AWS_PROFILE=broken", "AWS_CONFIG_FILE="+broken),
		with(misused("an endpoint in the environment that is none", tail, "endpoint", "here"), "AWS_ENDPOINT_URL=here"),
		with(fails("certificates that are not there", tail+"--endpoint https://127.0.0.1:1", "AWS_CA_BUNDLE"), "AWS_CA_BUNDLE="+p.path("none.pem")),
		with(fails("certificates that are none", tail+"--endpoint https://127.0.0.1:1", "AWS_CA_BUNDLE"), "AWS_CA_BUNDLE="+broken),
		with(fails("a proxy that is dead", tail+away, "proxy", dead), "HTTP_PROXY="+dead),
		fails("a clock that is late", refusing(403, "InvalidSignatureException", skewed), "clock"),
		fails("a clock that is early", refusing(403, "InvalidSignatureException", early), "clock"),
		fails("a key that nobody knows", refusing(403, "UnrecognizedClientException", "The security token included in the request is invalid."), "does not accept the credentials"),
		fails("a secret that is wrong", refusing(403, "InvalidSignatureException", signed), "does not accept the credentials"),
		fails("a token that has expired", refusing(400, "ExpiredTokenException", "The security token included in the request is expired"), "expired", "sign in again"),
		fails("no right to list shards", refusing(400, "AccessDeniedException", "User: arn:aws:iam::1:user/x is not authorized"), "no permission for Kinesis ListShards", "IAM"),
		fails("an account that needs a subscription", refusing(400, "SubscriptionRequiredException", "The AWS Access Key Id needs a subscription for the service"), "subscription"),
		fails("a service that throttles for ever", refusing(400, "LimitExceededException", "Rate exceeded"), "limit", "later"),
		fails("a service that fails for ever", refusing(500, "InternalFailure", "out of order"), "Kinesis"),
	)
}

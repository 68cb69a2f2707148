package awsconf

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/wholebody"
)

// role is a role to assume for calls to Kinesis, usually in another account. The store and S3 do
// not use it.
type role struct{ arn, externalID, session string }

func (r *role) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.arn, "role", "", "call Kinesis with the IAM role of this `ARN`, for example of another account; the store and S3 keep the normal AWS credentials")
	cmd.Flags().StringVar(&r.externalID, "role-external-id", "", "the external `ID` that the role's trust policy requires")
	cmd.Flags().StringVar(&r.session, "role-session", "weir", "the session's `NAME`, which CloudTrail shows")
}

var (
	roleForm     = regexp.MustCompile(`^arn:[a-z0-9-]+:iam::\d{12}:role/[\w+=,.@/-]{1,576}$`)
	externalForm = regexp.MustCompile(`^[\w+=,.@:/-]+$`)
	sessionForm  = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
)

// check returns an error if the flags for the role are wrong.
func (r *role) check() error {
	switch {
	case r.arn == "" && r.externalID != "":
		return cli.Usagef("--role-external-id needs --role")
	case r.arn == "" && r.session != "" && r.session != "weir":
		return cli.Usagef("--role-session needs --role")
	case r.arn == "":
		return nil
	case !roleForm.MatchString(r.arn):
		return cli.Usagef("--role %.200q is not the ARN of a role, such as arn:aws:iam::123456789012:role/reads-orders", r.arn)
	case r.externalID != "" && (len(r.externalID) < 2 || len(r.externalID) > 1224 || !externalForm.MatchString(r.externalID)):
		return cli.Usagef("--role-external-id must be 2 to 1224 of a-z, A-Z, 0-9, _ + = , . @ : / -")
	case !sessionForm.MatchString(r.session):
		return cli.Usagef("--role-session %.80q must be 2 to 64 of a-z, A-Z, 0-9, _ + = , . @ -", r.session)
	}
	return nil
}

// assume returns a configuration with the credentials of the role. They are renewed before they
// expire. It returns an error if the role cannot be assumed.
func (r *role) assume(ctx context.Context, f *Flags, cfg aws.Config) (aws.Config, error) {
	peer := f.Peer(ctx, "STS, for the role")
	client := sts.NewFromConfig(cfg, func(o *sts.Options) {
		o.HTTPClient = peers.Client{HTTPClient: wholebody.Client(o.HTTPClient), Peer: peer, Service: "STS"}
	})
	assumed := stscreds.NewAssumeRoleProvider(client, r.arn, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = r.session
		if r.externalID != "" {
			o.ExternalID = &r.externalID
		}
	})
	cfg.Credentials = aws.NewCredentialsCache(assumed, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = time.Minute })
	err := peers.Persist(ctx, f.Wait, peer, func() error {
		_, err := retrieve(ctx, cfg)
		return err
	})
	if err != nil {
		var call *smithy.OperationError
		if errors.As(err, &call) {
			err = call // leave out the text that the cache adds
		}
		return cfg, fmt.Errorf("the role %s cannot be assumed: %w", r.arn, err)
	}
	return cfg, nil
}

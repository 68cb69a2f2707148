package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/bench"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/consume"
	"github.com/weir-go/weir/cmd/weir/internal/dashboard"
	"github.com/weir-go/weir/cmd/weir/internal/dead"
	"github.com/weir-go/weir/cmd/weir/internal/demo"
	"github.com/weir-go/weir/cmd/weir/internal/doctor"
	"github.com/weir-go/weir/cmd/weir/internal/exporter"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/group"
	"github.com/weir-go/weir/cmd/weir/internal/local"
	"github.com/weir-go/weir/cmd/weir/internal/migrate"
	"github.com/weir-go/weir/cmd/weir/internal/multilang"
	"github.com/weir-go/weir/cmd/weir/internal/put"
	"github.com/weir-go/weir/cmd/weir/internal/queuecmd"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/stream"
	"github.com/weir-go/weir/cmd/weir/internal/tail"
)

func newRoot(t cli.Terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Groups of workers that share a Kinesis stream",
		Long: `weir works with Amazon Kinesis data streams and with applications that read
them: groups of workers that share the shards of a stream, checkpoint their
progress, follow every split and merge in order, and keep running when any
worker dies.

New here? "weir demo" shows all of that on this machine within a minute. It
needs no account and no network.`,
		Example: `  weir demo                                        see it work, with real data
  weir local --stream flights:4                    a Kinesis for development, on port 4567
  weir put --stream flights --key origin FILE      fill a stream from a file
  weir tail --stream flights --from oldest         look into it
  weir consume --stream flights --app billing --store sqlite:billing.db    one worker; start several`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		Version: cli.ThisBuild().String(),
	}
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddGroup(
		&cobra.Group{ID: "try", Title: "On this machine:"},
		&cobra.Group{ID: "stream", Title: "With a stream:"},
		&cobra.Group{ID: "app", Title: "With an application's progress:"},
	)
	in := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	in("try", demo.Command(t), local.Command(t))
	in("stream", put.Command(t), tail.Command(t), consume.Command(t), multilang.Command(t), stream.Command(t),
		queuecmd.Command(t), fanout.Command(t), bench.Command(t))
	in("app", group.Command(t), migrate.Command(t), dashboard.Command(t), exporter.Command(t),
		doctor.Command(t), dead.Command(t), stores.Command(t))
	root.AddCommand(cli.VersionCommand(t), demo.WorkerCommand(t))
	cli.Finish(root, t)
	return root
}

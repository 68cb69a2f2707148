package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/dashboard"
)

// pageWrites contains the flags that allow changes, and the flags about the users who may make
// changes.
type pageWrites struct {
	on         bool
	behindAuth bool
	userHeader string
	dumpDir    string
}

func (p *pageWrites) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.on, "allow-writes", false, "let the page pause, resume, drain and reset")
	cmd.Flags().BoolVar(&p.behindAuth, "behind-auth", false, "the page is reached only through a proxy that authenticates users")
	cmd.Flags().StringVar(&p.userHeader, "user-header", "X-Forwarded-User", "the `HEADER` in which that proxy passes the user's name")
	cmd.Flags().StringVar(&p.dumpDir, "dump-dir", ".", "`DIR` in which the page saves the progress before it moves checkpoints")
}

var headerForm = regexp.MustCompile(`^[a-zA-Z0-9-]{1,64}$`)

func (p *pageWrites) check(cmd *cobra.Command, addr string) error {
	switch {
	case p.on && !p.behindAuth && !awsconf.IsLoopback("http://"+addr):
		return cli.Usagef("--allow-writes with --addr %s lets anyone with access to the address change things without a password: put a proxy with authentication in front, and add --behind-auth", addr)
	case cmd.Flags().Changed("user-header") && !p.behindAuth:
		return cli.Usagef("--user-header is trusted only behind a proxy: add --behind-auth if there is one")
	case !headerForm.MatchString(p.userHeader):
		return cli.Usagef("--user-header %.80q: give the name of a header, such as X-Forwarded-User", p.userHeader)
	case cmd.Flags().Changed("dump-dir") && !p.on:
		return cli.Usagef("--dump-dir applies only to --allow-writes: add it")
	case !p.on:
		return nil
	}
	return checkDir("--dump-dir", p.dumpDir)
}

func checkDir(flag, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return cli.Usagef("%s %s: %v", flag, dir, cli.RootError(err))
	case !info.IsDir():
		return cli.Usagef("%s %s is not a directory", flag, dir)
	}
	return nil
}

// allow sets the options of the page for changes, according to the flags.
func (p *pageWrites) allow(t cli.Terminal, o *dashboard.Options) {
	if !p.on {
		return
	}
	o.Logger = slog.New(cli.LogText.Handler(t.Err))
	o.Authorize = func(r *http.Request, _ dashboard.Action) error {
		if !p.behindAuth {
			return nil // every user of this machine may make changes
		}
		_, err := p.named(r)
		return err
	}
	if p.behindAuth {
		o.User = func(r *http.Request) string {
			name, _ := p.named(r) // "" if there is no name
			return name
		}
	}
	o.SaveProgress = func(_ context.Context, app string, progress []byte) (string, error) {
		return saveProgress(p.dumpDir, app, progress, time.Now())
	}
}

// named returns the name of the user that the proxy sent.
func (p *pageWrites) named(r *http.Request) (string, error) {
	names := r.Header.Values(p.userHeader)
	switch {
	case len(names) == 0 || strings.TrimSpace(names[0]) == "":
		return "", fmt.Errorf("the proxy in front sent no user in %s: configure it to set that header, or set --user-header to the header that it uses", p.userHeader)
	case len(names) > 1:
		return "", fmt.Errorf("the header %s was sent more than once: configure the proxy in front to replace it", p.userHeader)
	}
	return strings.TrimSpace(names[0]), nil
}

// serve serves the page until ctx ends.
func (p *pageWrites) serve(ctx context.Context, t cli.Terminal, addr string, page http.Handler) error {
	open := serve.WithoutPassword
	switch {
	case p.on && p.behindAuth:
		open = fmt.Sprintf("requests that bypass the proxy can name any user in %s and change things", p.userHeader)
	case p.behindAuth:
		open = "requests that bypass the proxy need no password"
	}
	return serve.Until(ctx, t, addr, page, open, func(addr string) string {
		text := fmt.Sprintf("the page is at http://%s/", addr)
		if p.on {
			text += ", and changes things"
		}
		return text
	})
}

// saveProgress writes the progress of an application to a new file in a directory, and syncs the
// file to disk.
func saveProgress(dir, app string, progress []byte, now time.Time) (string, error) {
	const tries = 100 // files per second
	for n := range tries {
		path := filepath.Join(dir, target.DumpName(app, now, n))
		err := cli.WriteNew(path, func(f *os.File) error {
			_, err := f.Write(progress)
			return err
		})
		if !errors.As(err, new(cli.ExistsError)) {
			return path, err
		}
	}
	return "", fmt.Errorf("there are %d files of this second already in %s", tries, dir)
}

package servers

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Bucket is the name of the bucket that [S3] creates.
const Bucket = "weir"

// S3 starts versitygw, an S3 server that stores files in a folder, with one bucket.
func S3(t testing.TB) *Database {
	t.Helper()
	server := filepath.Join(fetched(t, "versitygw"), "versitygw")
	d := newDatabase(t, "S3", false)
	files, about := filepath.Join(d.Dir, "files"), filepath.Join(d.Dir, "about")
	for _, dir := range []string{filepath.Join(files, Bucket), about} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.command = func() *exec.Cmd {
		// Keep the metadata in separate files, for file systems without extended attributes.
		cmd := exec.Command(server, "--quiet", "--keep-alive", "--port", d.Addr, "--access", AccessKeyID, "--secret", SecretAccessKey, "--region", Region,
			"posix", "--sidecar", about, files)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.Dir}
		return cmd
	}
	d.ready = func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Addr, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close() // any answer is sufficient
	}
	d.boot()
	return d
}

// S3Client returns a client for a server.
func S3Client(addr string, change ...func(*s3.Options)) *s3.Client {
	return s3.New(s3.Options{
		Region: Region, BaseEndpoint: aws.String("http://" + addr), UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: AccessKeyID, SecretAccessKey: SecretAccessKey}, nil
		}),
	}, change...)
}

package servers

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// PythonFunction returns the command that runs a Lambda function in its working directory. handler
// is its name, for example app.handler. It uses AWS's runtime client for Python and Powertools.
func PythonFunction(t testing.TB, handler string) string {
	t.Helper()
	return "exec " + filepath.Join(fetched(t, "lambda-python"), "bin", "python") + " -B -m awslambdaric " + handler
}

// NodeFunction returns the command that runs a Lambda function for Node.js in its working
// directory.
func NodeFunction(t testing.TB, handler string) string {
	t.Helper()
	return "exec node " + filepath.Join(fetched(t, "lambda-node"), "node_modules", "aws-lambda-ric", "bin", "index.mjs") + " " + handler
}

// GoFunction builds the Lambda function in a folder and returns its command. The folder is a
// separate module with AWS's runtime client for Go.
func GoFunction(t testing.TB, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "function")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return "exec " + program
}

// MultiLang returns the folder with the libraries and sample programs of the MultiLangDaemon.
func MultiLang(t testing.TB) string {
	t.Helper()
	return fetched(t, "multilang")
}

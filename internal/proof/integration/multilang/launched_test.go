//go:build unix

package multilang_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// The launchers of amazon_kclpy and aws-kcl start weir in place of java. Everything else is theirs:
// the launcher, its sample.properties and its sample program. aws-kcl has no sample, so its case
// has the program of its README. docs/moving/multilang.md shows these commands. In the first case
// the commands of that page have moved the checkpoints of the KCL before.
func TestLaunchersStartWeirInPlaceOfJava(t *testing.T) {
	libraries := servers.MultiLang(t)
	weir := buildWeir(t)
	const helper = `exec $(python -B "$SAMPLES/amazon_kclpy_helper.py" --print_command --java "$WEIR" --properties sample.properties)`
	kclpy := func(version string) map[string]string {
		library := filepath.Join(libraries, "amazon_kclpy-"+version)
		return map[string]string{"PYTHONPATH": library, "PYTHONUNBUFFERED": "1", "SAMPLES": filepath.Join(library, "samples")}
	}
	for _, c := range []struct {
		name, script, stream string
		env                  map[string]string
		sample               string // the library's own sample program
		program              string // a program of testdata that replaces it
		moves                bool
	}{
		{name: "amazon_kclpy 3.1.3", script: helper, stream: "kclpysample", env: kclpy("3.1.3"), sample: "sample_kclpy_app.py", moves: true},
		{name: "amazon_kclpy 1.5.1", script: helper, stream: "words", env: kclpy("1.5.1"), program: "app.py"},
		{
			name: "aws-kcl 2.3.2", stream: "kclnodejssample", program: "app.js",
			script: `exec "$NODE_PATH/.bin/kcl-bootstrap" --java "$WEIR" -e -p sample.properties --jar-path jars`,
			env:    map[string]string{"NODE_PATH": filepath.Join(libraries, "node_modules")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, weir, "")
			s.srv.CreateStream(c.stream, 2)
			bin := filepath.Join(s.dir, "bin")
			if err := os.Mkdir(bin, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(libraries, "python", "bin", "python"), filepath.Join(bin, "python")); err != nil {
				t.Fatal(err)
			}
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			read := func(path ...string) string {
				t.Helper()
				text, err := os.ReadFile(filepath.Join(path...))
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			if c.sample != "" {
				write("bin/"+c.sample, read(c.env["SAMPLES"], c.sample))
				write("sample.properties", read(c.env["SAMPLES"], "sample.properties"))
			} else {
				interpreter := map[string]string{".py": "python -B", ".js": "node"}[filepath.Ext(c.program)]
				write(c.program, read("testdata", c.program))
				write("sample.properties", fmt.Sprintf("executableName = %s %s\nstreamName = %s\napplicationName = sample\n"+
					"AWSCredentialsProvider = DefaultAWSCredentialsProviderChain\ninitialPositionInStream = TRIM_HORIZON\nregionName = us-east-1\n",
					interpreter, c.program, c.stream))
			}
			if library := c.env["NODE_PATH"]; library != "" {
				emptyJars(t, filepath.Join(library, "aws-kcl", "pom.xml"), filepath.Join(s.dir, "jars"))
			}
			for i := range 300 {
				s.srv.Put(c.stream, fmt.Sprint("word-", i%17), fmt.Appendf(nil, "cat %d", i))
			}

			env := map[string]string{
				"PATH": bin + ":" + filepath.Dir(weir) + ":" + os.Getenv("PATH"), "WEIR": weir, "WEIR_STORE": "sqlite:" + filepath.Join(s.dir, "app.db"), "OUTPUT": filepath.Join(s.dir, "output"),
				"AWS_ENDPOINT_URL_KINESIS": s.srv.URL(), "AWS_REGION": region, "AWS_ACCESS_KEY_ID": servers.AccessKeyID, "AWS_SECRET_ACCESS_KEY": servers.SecretAccessKey,
			}
			maps.Copy(env, c.env)
			want := 300
			if c.moves {
				dynamo := servers.DynamoDBLocal(t)
				env["AWS_ENDPOINT_URL_DYNAMODB"], env["WEIR_STORE"] = dynamo.URL, "dynamodb:PythonKCLSample-weir"
				want -= s.leases(t, dynamo, "PythonKCLSample", c.stream)
				for _, command := range pageCommands(t) {
					move := exec.CommandContext(t.Context(), "sh", "-c", command)
					move.Env = environ(env)
					if out, err := move.CombinedOutput(); err != nil {
						t.Fatalf("%s: %v\n%s", command, err, out)
					}
				}
			}
			log, err := os.Create(filepath.Join(s.dir, "output", "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			cmd := exec.Command("sh", "-c", c.script)
			cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, log, log, environ(env)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // kcl-bootstrap does not pass signals on
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			group := -cmd.Process.Pid
			defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for deadline := time.Now().Add(time.Minute); len(s.seen) < want; time.Sleep(50 * time.Millisecond) {
				if s.look(t); time.Now().After(deadline) {
					t.Fatalf("%d of %d records were handled:\n%.6000s", len(s.seen), want, read(log.Name()))
				}
			}
			if err := syscall.Kill(group, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err = <-ended
			for deadline := time.Now().Add(time.Minute); !errors.Is(syscall.Kill(group, 0), syscall.ESRCH); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("weir still runs a minute after SIGTERM")
				}
			}
			if bootstrap := c.env["NODE_PATH"] != ""; !bootstrap && err != nil {
				t.Errorf("weir ended with %v, want exit code 0:\n%.6000s", err, read(log.Name()))
			}
			s.look(t)
			if len(s.seen) != want || len(s.wrong) > 0 {
				t.Errorf("%d of %d records, out of order: %v", len(s.seen), want, s.wrong)
			}
			if c.sample != "" && !strings.Contains(read(log.Name()), "Shutdown has been requested, checkpointing.") {
				t.Errorf("the sample does not report the stop:\n%.6000s", read(log.Name()))
			}
		})
	}
}

const region = "us-east-1" // of sample.properties

func environ(env map[string]string) []string {
	all := os.Environ()
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// leases writes a lease table of the KCL, in which half of each shard is done. It returns the
// number of records that are done.
func (s *stage) leases(t *testing.T, dynamo *servers.Server, table, stream string) (done int) {
	t.Helper()
	client := dynamo.DynamoDB(func(o *dynamodb.Options) { o.Region = region })
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("leaseKey"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("leaseKey"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	shards := map[string][]string{}
	for _, r := range s.srv.Records(stream) {
		shards[r.Shard] = append(shards[r.Shard], r.SequenceNumber)
	}
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	number := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	for id, all := range shards {
		n := len(all) / 2
		done += n
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
			"leaseKey": text(id), "leaseCounter": number("12"), "ownerSwitchesSinceCheckpoint": number("0"), "entityType": text("LEASE"),
			"checkpoint": text(all[n-1]), "checkpointSubSequenceNumber": number("0"),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return done
}

// pageCommands returns the commands of docs/moving/multilang.md that move the checkpoints.
func pageCommands(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/moving/multilang.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "    weir store create ") || strings.HasPrefix(line, "    weir migrate kcl ") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	if len(commands) != 2 {
		t.Fatalf("the page has the commands %q", commands)
	}
	return commands
}

// emptyJars writes an empty file for each jar that kcl-bootstrap would download. It checks only
// that they exist.
func emptyJars(t *testing.T, pom, folder string) {
	t.Helper()
	text, err := os.ReadFile(pom)
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Properties struct {
			All []struct {
				XMLName xml.Name
				Value   string `xml:",chardata"`
			} `xml:",any"`
		} `xml:"properties"`
		Jars []struct {
			Artifact string `xml:"artifactId"`
			Version  string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	if err := xml.Unmarshal(text, &project); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, jar := range project.Jars {
		version := jar.Version
		for _, p := range project.Properties.All {
			version = strings.ReplaceAll(version, "${"+p.XMLName.Local+"}", p.Value)
		}
		if err := os.WriteFile(filepath.Join(folder, jar.Artifact+"-"+version+".jar"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(project.Jars) < 20 {
		t.Fatalf("%s names only %d jars", pom, len(project.Jars))
	}
}

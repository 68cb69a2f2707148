package java_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/payload"
)

// AWS's own client of the Glue Schema Registry reads the headers that weir writes, and weir reads
// those of the client, with and without compression.
func TestGlueHeadersAreThoseOfAWS(t *testing.T) {
	version, err := payload.ParseSchemaVersion("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString
	datas := [][]byte{[]byte("x"), []byte(strings.Repeat("a record about an order. ", 100))}
	var in strings.Builder
	for _, data := range datas {
		for _, compress := range []bool{false, true} {
			word := map[bool]string{false: "NONE", true: "ZLIB"}[compress]
			p, err := payload.Glue{Version: version, Compress: compress}.Encode(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&in, "write %s %v %s\nread %s\n", word, version, text(data), text(p))
		}
	}
	cmd := servers.Java(t, nil, "GlueFrames.java")
	cmd.Stdin = strings.NewReader(in.String())
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, failed.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, data := range datas {
		for j := range 2 {
			n := 2 * (2*i + j)
			p, err := base64.StdEncoding.DecodeString(lines[n])
			if err != nil {
				t.Fatal(err)
			}
			v, got, marked, err := payload.Glue{}.Split(p)
			if v != version || !bytes.Equal(got, data) || !marked || err != nil {
				t.Errorf("weir reads %v %.20q %v, %v", v, got, marked, err)
			}
			if want := version.String() + " " + text(data); lines[n+1] != want {
				t.Errorf("AWS's client reads %.80q, want %.80q", lines[n+1], want)
			}
		}
	}
}

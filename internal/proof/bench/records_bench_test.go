//go:build unix

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
)

// BenchmarkRecords reads like BenchmarkConsumer, but the answers to GetRecords come from memory. It
// measures weir's own work per record, and compares that work with copying and discarding the
// answers. Without the system and TLS, the result depends little on the load of the machine.
//
//	go test -run '^$' -bench Records -benchtime 1x ./internal/proof/bench
func BenchmarkRecords(b *testing.B) {
	for _, c := range []readCase{
		{"100Bx10000", false, 10_000, 100, 128, 12, 600, 0, 0},
		{"1KiBx1000", false, 1000, 1024, 256, 20, 2000, 0, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			if testing.Short() {
				c.read /= 5
			}
			p := serveBench(b, c.config())
			answers := prepare(b, p.Address, c)
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &preparedConn{Conn: conn, answers: answers, page: c.records}, err
			}
			t := benchTransport(p.Address)
			t.DialContext = dial
			client := benchClient(p.Address, func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: t} })
			for b.Loop() {
				for range rounds() {
					limit := readPages(b, limitMode, c, c.read, func(ctx context.Context, shard, from int) (int, int, error) {
						conn := preparedConn{answers: answers, page: c.records}
						if _, err := fmt.Fprint(&conn, "Kinesis_20131202.GetRecords", benchserver.Iterator(shard, from)); err != nil {
							return 0, 0, err
						}
						var buf [64 << 10]byte
						for len(conn.left) > 0 {
							_, _ = conn.Read(buf[:])
						}
						return c.records, c.records * c.bytes, nil
					})
					for _, m := range []struct {
						name string
						opts weir.Options
					}{{"weir", weir.Options{}}, {"weir, reused buffers", reuse}} {
						if !strings.Contains(m.name, *onlyModes) {
							continue
						}
						s := readByWeir(b, client, c, m.opts)
						fmt.Printf("%s %s: %.0f ns/record over the limit of %.0f\n", b.Name(), m.name, s.perRecord()-limit.perRecord(), limit.perRecord())
					}
				}
			}
		})
	}
}

// prepare fetches the answers to GetRecords. Their index is the number of the page.
func prepare(tb testing.TB, addr benchserver.Address, c readCase) (answers [][]byte) {
	client := &http.Client{Transport: benchTransport(addr)}
	for page := range c.pages {
		resp, err := post(tb.Context(), client, addr.URL, "GetRecords", "application/x-amz-cbor-1.1", cborRequest(benchserver.Iterator(0, page*c.records), c.records))
		if err != nil {
			tb.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			tb.Fatal(err)
		}
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-cbor-1.1\r\nContent-Length: %d\r\n\r\n", len(body))
		answers = append(answers, append([]byte(head), body...))
	}
	return answers
}

// preparedConn answers calls of GetRecords from memory, in pieces as large as those of TLS. It
// forwards other calls.
type preparedConn struct {
	net.Conn
	answers [][]byte
	page    int // number of records
	left    []byte
}

func (c *preparedConn) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("Kinesis_20131202.GetRecords")) {
		return c.Conn.Write(b)
	}
	const head, place, digits = "AAAAAAAAAAG-", 8, 16 // positions in an iterator
	i := bytes.Index(b, []byte(head))
	if i < 0 || len(b) < i+len(head)+place+digits {
		return c.Conn.Write(b)
	}
	from := i + len(head) + place
	n, err := strconv.ParseUint(string(b[from:from+digits]), 16, 62)
	if err != nil || int(n)/c.page >= len(c.answers) {
		return c.Conn.Write(b)
	}
	c.left = c.answers[int(n)/c.page]
	return len(b), nil
}

func (c *preparedConn) Read(b []byte) (int, error) {
	if len(c.left) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b[:min(len(b), 16<<10)], c.left)
	c.left = c.left[n:]
	return n, nil
}

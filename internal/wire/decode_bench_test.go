package wire

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{100, 1024} {
		page := samplePage(1000, size)
		for _, c := range []struct {
			name string
			f    Format
			body []byte
		}{
			{"cbor", CBOR, (&cborStyle{}).encode(page)},
			{"cbor-indefinite", CBOR, (&cborStyle{open: true}).encode(page)},
			{"cbor-unpredicted", CBOR, (&cborStyle{extra: true}).encode(page)},
			{"json", JSON, (&jsonStyle{time: "e"}).encode(page)},
		} {
			b.Run(fmt.Sprintf("%s/%dB", c.name, size), func(b *testing.B) {
				work := make([]byte, len(c.body))
				var p Page
				b.SetBytes(int64(len(c.body)))
				b.ReportAllocs()
				began, known := cpuTime()
				for b.Loop() {
					if c.f == JSON {
						copy(work, c.body) // it is decoded in place
						mustDecode(b, c.f, work, &p)
						continue
					}
					mustDecode(b, c.f, c.body, &p)
				}
				if ended, _ := cpuTime(); known {
					b.ReportMetric(float64(ended-began)/float64(b.N)/1000, "cpu-ns/record")
				}
			})
		}
	}
}

func BenchmarkBase64(b *testing.B) {
	src := []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("0123456789abcdef", 64))))
	work := make([]byte, len(src))
	b.Run("tables", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			copy(work, src)
			if n, ok := decodeBase64(work); !ok || n != 1024 {
				b.Fatal(n)
			}
		}
	})
	b.Run("encoding/base64", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		for b.Loop() {
			copy(work, src)
			if n, err := base64.StdEncoding.Decode(work, work); err != nil || n != 1024 {
				b.Fatal(n)
			}
		}
	})
}

package codec_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{100, 1024} {
		page := answers.Sample(1000, size)
		for _, c := range []struct {
			name string
			f    codec.Format
			body []byte
		}{
			{"cbor", codec.CBOR, answers.CBOR{}.Encode(page)},
			{"cbor-indefinite", codec.CBOR, answers.CBOR{Open: true}.Encode(page)},
			{"cbor-unpredicted", codec.CBOR, answers.CBOR{Extra: true}.Encode(page)},
			{"json", codec.JSON, answers.JSON{Time: "e"}.Encode(page)},
		} {
			b.Run(fmt.Sprintf("%s/%dB", c.name, size), func(b *testing.B) {
				work := make([]byte, len(c.body))
				var p codec.Page
				b.SetBytes(int64(len(c.body)))
				b.ReportAllocs()
				for b.Loop() {
					if c.f == codec.JSON {
						copy(work, c.body) // decoding modifies the body
						answers.Decode(b, c.f, work, &p)
						continue
					}
					answers.Decode(b, c.f, c.body, &p)
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
			if n, ok := codec.DecodeBase64(work); !ok || n != 1024 {
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

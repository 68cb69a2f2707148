// Package codecs contains the codecs of payloads that flags of the command name.
package codecs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/payload"
	"github.com/weir-go/weir/payload/zstdpayload"
)

// MostBytes is the largest decoded payload.
const MostBytes = 64 << 20

var zstd = sync.OnceValue(func() payload.Codec {
	c, err := zstdpayload.New(zstdpayload.Options{MaxBytes: MostBytes})
	if err != nil {
		panic(err) // the options are valid
	}
	return c
})

// Compressed returns the codecs that tools use to show a payload. Other data do not begin with
// their marks. Each codec refuses decoded data above most bytes.
func Compressed(most int) map[string]payload.Codec {
	c, err := zstdpayload.New(zstdpayload.Options{MaxBytes: most})
	if err != nil {
		panic(err) // the options are valid
	}
	return map[string]payload.Codec{"gzip": payload.Gzip{MaxBytes: most}, "zstd": c}
}

// Compress is the flag --compress.
type Compress struct{ name string }

// Register adds the flag.
func (f *Compress) Register(cmd *cobra.Command) {
	cli.Choose(cmd, "compress", &f.name, "compress each line: no, gzip or zstd",
		cli.Word("no", "", "lines stay as they are"),
		cli.Word("gzip", "gzip", "all consumers must decompress gzip"),
		cli.Word("zstd", "zstd", "all consumers must decompress zstd; it is faster than gzip"))
}

// Encode returns the encoding of the flag's codec, or nil without a codec.
func (f *Compress) Encode() func(context.Context, []byte) ([]byte, error) {
	switch f.name {
	case "gzip":
		return payload.Gzip{}.Encode
	case "zstd":
		return zstd().Encode
	}
	return nil
}

// names lists the codecs of --decode.
var names = []string{"gzip", "zstd", "glue", "lzutf8"}

// About describes --decode for the help texts of commands.
const About = `--decode gzip,zstd
decodes payloads that have the mark of one of these codecs, before --filter.`

// Decode is the flag --decode.
type Decode struct {
	given []string
	codec payload.Codec
}

// Register adds the flag.
func (f *Decode) Register(cmd *cobra.Command) {
	cmd.Flags().Var(f, "decode", "decode `CODECS`: "+strings.Join(names, ", "))
	cli.MustComplete(cmd, "decode", "gzip", "zstd", "gzip,zstd", "glue", "lzutf8")
}

// String returns the value of the flag.
func (f *Decode) String() string { return strings.Join(f.given, ",") }

// Type returns the word for the value in the help.
func (f *Decode) Type() string { return "CODECS" }

// Set parses the value of the flag.
func (f *Decode) Set(value string) error {
	f.given = nil
	var all []payload.Codec
	for _, name := range strings.Split(value, ",") {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%.140q: use %s, with a comma between two of them", value, strings.Join(names, ", "))
		}
		if slices.Contains(f.given, name) {
			return fmt.Errorf("%.140q: %s occurs twice", value, name)
		}
		f.given = append(f.given, name)
		switch name {
		case "gzip":
			all = append(all, payload.Gzip{MaxBytes: MostBytes})
		case "zstd":
			all = append(all, zstd())
		case "glue":
			all = append(all, payload.Glue{MaxBytes: MostBytes})
		case "lzutf8":
			all = append(all, payload.LZUTF8{MaxBytes: MostBytes})
		}
	}
	slices.Reverse(all) // a chain decodes in reverse order
	f.codec = payload.Chain(all...)
	return nil
}

// On reports whether the flag is given.
func (f *Decode) On() bool { return f.codec != nil }

// Matcher returns a matcher that gets decoded data.
func (f *Decode) Matcher(by weir.Matcher) weir.Matcher {
	if !f.On() || by == nil {
		return by
	}
	return payload.Matching(by, f.codec)
}

// Data returns the decoded data of a payload. Without the flag, it returns the payload.
func (f *Decode) Data(ctx context.Context, data []byte) ([]byte, error) {
	if !f.On() {
		return data, nil
	}
	return payload.Decode(ctx, data, f.codec)
}

// Handler returns a handler that passes decoded records to next. If a record cannot be decoded,
// next gets the records before it, and the handler rejects the record.
func (f *Decode) Handler(next weir.Handler) weir.Handler {
	if !f.On() {
		return next
	}
	return weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
		decoded := *b
		decoded.Records = slices.Clone(b.Records) // the originals stay as they are for dead letters
		for i := range decoded.Records {
			r := &decoded.Records[i]
			data, err := f.Data(ctx, r.Data)
			if err != nil {
				wrong := weir.RejectAt(b.Records[i], fmt.Errorf("--decode %s: %w", f, err))
				if i == 0 {
					return wrong
				}
				decoded.Records, decoded.End = decoded.Records[:i], false
				if err := next.Handle(ctx, &decoded); err != nil {
					return err
				}
				return wrong
			}
			r.Data = data
		}
		return next.Handle(ctx, &decoded)
	})
}

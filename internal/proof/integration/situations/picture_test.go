package situations_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/internal/proof/integration/servers"
)

// pictures is the folder of the pictures.
var pictures = filepath.Join("..", "..", "..", "..", "docs", "guide", "situations")

const (
	wide   = 900 // pixels of a picture
	high   = 760 // at most
	heavy  = 60 << 10
	colors = 30
)

// browser is a browser that takes pictures, one after the other.
type browser struct {
	mu  sync.Mutex
	ctx context.Context
}

// newBrowser starts a browser.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, env := servers.Browser(t)
	dir, err := os.MkdirTemp("", "weir-situations-") //nolint:usetesting // the browser's processes may still write
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 50 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
		t.Log("the browser's profile stays:", err)
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Env(env...),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(dir), chromedp.WindowSize(wide, high))
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end() })
	if err := chromedp.Run(ctx, emulation.SetDeviceMetricsOverride(wide, high, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}})); err != nil {
		t.Fatal(err)
	}
	return &browser{ctx: ctx}
}

// picture takes a picture of a page. It stores it among the artifacts of the test and, with
// -update, in the documents.
func (b *browser) picture(t *testing.T, url, name string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	var shot []byte
	var tall float64
	err := chromedp.Run(ctx, chromedp.Navigate(url),
		chromedp.Poll(`document.querySelector("#view h1") !== null && document.querySelector(".loading") === null`, nil),
		chromedp.Evaluate(`document.documentElement.getBoundingClientRect().height`, &tall),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			shot, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).
				WithClip(&page.Viewport{Width: wide, Height: min(tall, high), Scale: 1}).Do(ctx)
			return err
		}))
	if err != nil {
		t.Errorf("no picture: %v", err)
		return
	}
	small, err := reduced(shot)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the picture has %d KiB, and %d KiB with fewer colours", len(shot)>>10, len(small)>>10)
	if len(small) > heavy {
		t.Errorf("the picture has %d bytes, more than %d", len(small), heavy)
	}
	dirs := []string{t.ArtifactDir()}
	if *update {
		dirs = append(dirs, pictures)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), small, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reduced returns a picture with few colours, which makes its file small. It keeps the most
// frequent colours, but only one of colours that look alike: the dots of a pattern are few pixels,
// and they must stay visible. It keeps the colours of states exactly, because their key is small.
func reduced(shot []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int { return count[b] - count[a] })
	palette := color.Palette{}
	for _, c := range stateColors {
		if count[c] > 0 {
			palette = append(palette, c)
		}
	}
	for _, c := range all {
		if len(palette) < colors && !slices.ContainsFunc(palette, func(p color.Color) bool { return alike(p.(color.RGBA), c) }) {
			palette = append(palette, c)
		}
	}
	small := image.NewPaletted(bounds, palette)
	draw.Draw(small, bounds, full, bounds.Min, draw.Src)
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small)
	return b.Bytes(), err
}

// stateColors are the colours of states in page.css, in the light scheme.
var stateColors = []color.RGBA{
	{0xa9, 0xcf, 0xb5, 0xff}, {0xf2, 0xd1, 0x84, 0xff}, {0xf0, 0xa5, 0x8f, 0xff},
	{0xe0, 0x70, 0x5c, 0xff}, {0xc9, 0xcc, 0xd4, 0xff}, {0xe4, 0xe9, 0xee, 0xff},
}

// alike reports whether two colours differ little.
func alike(a, b color.RGBA) bool {
	apart := func(x, y uint8) int { return max(int(x), int(y)) - min(int(x), int(y)) }
	return apart(a.R, b.R)+apart(a.G, b.G)+apart(a.B, b.B) < 24
}

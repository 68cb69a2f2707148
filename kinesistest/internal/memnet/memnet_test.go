package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBothSidesMayWriteFirst(t *testing.T) {
	a, b := Pipe(Addr("a"), Addr("b"))
	for _, c := range []net.Conn{a, b} {
		if n, err := c.Write(make([]byte, bufferSize)); n != bufferSize || err != nil {
			t.Fatal(n, err)
		}
	}
	if a.LocalAddr().String() != "a" || a.RemoteAddr() != b.LocalAddr() || a.RemoteAddr().Network() != "memory" {
		t.Error("the addresses are wrong")
	}
}

func TestEverythingArrivesInOrder(t *testing.T) {
	a, b := Pipe(Addr("a"), Addr("b"))
	sent := make([]byte, 5*bufferSize+17)
	for i := range sent {
		sent[i] = byte(i * 7 >> 3)
	}
	var wg sync.WaitGroup
	for _, c := range []net.Conn{a, b} {
		wg.Go(func() {
			for from, size := 0, 1; from < len(sent); size = size*3 + 1 {
				n, err := c.Write(sent[from:min(len(sent), from+size)])
				if err != nil {
					t.Error(err)
				}
				from += n
			}
		})
		wg.Go(func() {
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("something else arrived, %v", err)
			}
		})
	}
	wg.Wait()
}

func TestClose(t *testing.T) {
	a, b := Pipe(Addr("a"), Addr("b"))
	if _, err := a.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(b); string(got) != "last" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("write to a closed end: %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
}

func TestCloseEndsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(Addr("a"), Addr("b"))
		errs := make(chan error, 2)
		go func() { _, err := a.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := a.Write(make([]byte, 2*bufferSize)); errs <- err }()
		synctest.Wait()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		got := []error{<-errs, <-errs}
		if !errors.Is(errors.Join(got...), io.EOF) || !errors.Is(errors.Join(got...), io.ErrClosedPipe) {
			t.Errorf("got %v", got)
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(Addr("a"), Addr("b"))
		set := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		read := func(want error, after time.Duration) {
			t.Helper()
			began := time.Now()
			_, err := a.Read(make([]byte, 8))
			if !errors.Is(err, want) || time.Since(began) != after {
				t.Errorf("read: %v after %v, want %v after %v", err, time.Since(began), want, after)
			}
		}
		set(a.SetReadDeadline(time.Now().Add(time.Minute)))
		read(os.ErrDeadlineExceeded, time.Minute)
		read(os.ErrDeadlineExceeded, 0)
		set(a.SetDeadline(time.Time{}))
		if _, err := b.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		read(nil, 0)
		set(a.SetReadDeadline(time.Now().Add(-time.Second)))
		read(os.ErrDeadlineExceeded, 0)

		// Move a deadline during a wait, as net/http does.
		set(a.SetReadDeadline(time.Time{}))
		go func() {
			time.Sleep(time.Hour)
			set(a.SetReadDeadline(time.Unix(1, 0)))
		}()
		read(os.ErrDeadlineExceeded, time.Hour)

		set(a.SetWriteDeadline(time.Now().Add(time.Second)))
		if n, err := a.Write(make([]byte, bufferSize+1)); n != bufferSize || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d, %v", n, err)
		}
		var timeout net.Error
		if _, err := a.Write([]byte("x")); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
		// Closing the connection must stop the timer of a deadline in the far future.
		set(b.SetDeadline(time.Now().Add(1000 * time.Hour)))
		set(errors.Join(a.Close(), b.Close()))
	})
}

func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen("here")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Dial(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody accepts: %v", err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
		c, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "ping" {
			t.Errorf("read %q, %v", got, err)
		}
		if err := errors.Join(c.Close(), l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if _, err := l.Dial(t.Context()); err == nil {
			t.Error("a closed listener was dialled")
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	})
}

package benchserver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"
)

var errOnlyJSON = errors.New("asked for in JSON alone")

const variable = "WEIR_BENCH_SERVER"

// Main runs the server if [Start] started this process. The server runs until standard input ends;
// then Main exits the process. A program that calls Start must call Main first.
func Main() {
	config := os.Getenv(variable)
	if config == "" {
		return
	}
	if err := serve(config, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchserver:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Address is the address of a server.
type Address struct {
	URL         string
	Certificate []byte // the certificate to trust, in PEM; empty without TLS
}

func serve(config string, in io.Reader, out io.Writer) error {
	var cfg Config
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	s, err := NewServer(cfg)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := Address{URL: "http://" + listener.Addr().String()}
	srv := &http.Server{
		Handler: s, ConnState: s.stats.connection, ReadHeaderTimeout: time.Minute,
		// There would be thousands of messages about disconnected clients.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	ended := make(chan error, 1)
	if cfg.TLS {
		addr.URL = "https://" + listener.Addr().String()
		var pair tls.Certificate
		if pair, addr.Certificate, err = certificate(); err != nil {
			return err
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		go func() { ended <- srv.ServeTLS(listener, "", "") }()
	} else {
		go func() { ended <- srv.Serve(listener) }()
	}
	answer := json.NewEncoder(out)
	if err := answer.Encode(addr); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == "reset" {
			s.stats.reset()
		}
		if err := answer.Encode(s.stats.now()); err != nil {
			return err
		}
	}
	_ = srv.Close()
	<-ended //nolint:errcheck // always ErrServerClosed
	return nil
}

func certificate() (pair tls.Certificate, inPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "benchserver"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return pair, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Process is a server in a separate process. Only one goroutine at a time may use it.
type Process struct {
	Address
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// Start starts this program again as a server.
func Start(cfg Config) (*Process, error) {
	config, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), self)
	cmd.Env = append(os.Environ(), variable+"="+string(config))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, in: in, out: json.NewDecoder(out)}
	if err := p.out.Decode(&p.Address); err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not say where it is: %w", err), p.Close())
	}
	return p, nil
}

// Stats returns the statistics since the start or the last Reset.
func (p *Process) Stats() (Stats, error) { return p.ask("stats") }

// Reset resets the statistics.
func (p *Process) Reset() error {
	_, err := p.ask("reset")
	return err
}

func (p *Process) ask(what string) (s Stats, err error) {
	if _, err := fmt.Fprintln(p.in, what); err != nil {
		return s, err
	}
	err = p.out.Decode(&s)
	return s, err
}

// Close stops the server.
func (p *Process) Close() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}

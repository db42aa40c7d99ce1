package relay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/contract/wire"
)

func serveTLS(t *testing.T, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() { // before Stop: a listener that just closes ends Serve with an error
		_ = ln.Close()
		<-done
	})
	return ln.Addr().String()
}

func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func dialTLS(t *testing.T, addr string, alpn ...string) (*tls.Conn, error) {
	t.Helper()
	d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: patience}, Config: &tls.Config{InsecureSkipVerify: true, NextProtos: alpn}}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*tls.Conn), nil
}

func TestATokenOnRawTLSIsBoundToItsConnection(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, audience := startServer(t, d, func(c *Config) { c.TLS = selfSigned(t) })
	addr := serveTLS(t, s)
	var elsewhere string
	for _, c := range []struct {
		name  string
		claim func(own string) any
		want  wire.Type
	}{
		{"own exporter", func(own string) any { elsewhere = own; return own }, wire.FrameWelcome},
		{"exporter of another connection", func(string) any { return elsewhere }, wire.FrameReject},
		{"no exporter", func(string) any { return nil }, wire.FrameReject},
		{"empty exporter", func(string) any { return "" }, wire.FrameReject},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := dialTLS(t, addr, wire.ALPN)
			if err != nil {
				t.Fatal(err)
			}
			state := conn.ConnectionState()
			key, err := state.ExportKeyingMaterial("EXPORTER-siyuan-tunnel-auth", nil, 32)
			if err != nil {
				t.Fatal(err)
			}
			f := greetFake(t, d, audience, conn)
			f.auth(wire.Auth{Version: 1, Kind: wire.KindCalls, Token: f.token("c-1", func(_ *jwt.Token, m jwt.MapClaims) {
				if v := c.claim(base64.RawURLEncoding.EncodeToString(key)); v != nil {
					m["tls_exporter"] = v
				}
			})})
			fr, err := f.r.Next()
			if err != nil || fr.Type != c.want {
				t.Errorf("%v %s %v, want %v", fr.Type, fr.Header, err, c.want)
			}
		})
	}
}

func TestRawTLSAsksForItsProtocol(t *testing.T) {
	t.Parallel()
	d := newFakeDirectory(t)
	s, _ := startServer(t, d, func(c *Config) { c.TLS = selfSigned(t) })
	addr := serveTLS(t, s)
	for _, alpn := range [][]string{nil, {"h2", "http/1.1"}} {
		c, err := dialTLS(t, addr, alpn...)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		if err == nil {
			t.Errorf("ALPN %v was served", alpn)
		}
	}
	if c, err := net.Dial("tcp", addr); err == nil { // not TLS at all
		_, _ = c.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		_ = c.Close()
	}
	await(t, s, "all were counted", func(st Stats) bool { return st.Rejected == 3 })
}

func TestWithoutTLSConfigurationThereIsNoRawListener(t *testing.T) {
	t.Parallel()
	s, _ := startServer(t, newFakeDirectory(t), nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(ln); err == nil {
		t.Error("connectors would be served in the clear")
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

package pair

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"siyuan-broker/contract/wire"
)

// Refusal is an answer of the broker, or of something before it, that is not a
// success.
type Refusal struct {
	wire.PairError
	Broker     string
	Status     int
	RetryAfter time.Duration
	now        time.Time // of our clock, when it came
}

// Passes reports whether the same request may succeed later.
func (r *Refusal) Passes() bool {
	return r.Code == wire.PairUnavailable || r.Code == wire.PairInternalError || r.Code == "" && (r.Status >= 500 || r.Status == http.StatusTooManyRequests)
}

// Is makes the ends that people decide on comparable.
func (r *Refusal) Is(target error) bool {
	switch target {
	case ErrExpired:
		return r.Code == wire.PairExpired
	case ErrDenied:
		return r.Code == wire.PairDenied
	case ErrUnknown:
		return r.Code == wire.PairUnknown
	}
	return false
}

// Error says what happened and what to do next.
func (r *Refusal) Error() string {
	switch r.Code {
	case wire.PairExpired:
		return ErrExpired.Error()
	case wire.PairDenied:
		return ErrDenied.Error()
	case wire.PairUnknown:
		return ErrUnknown.Error()
	case wire.PairClock:
		off := r.now.Sub(time.Unix(r.BrokerTime, 0)).Round(time.Second)
		way := "ahead of"
		if off < 0 {
			off, way = -off, "behind"
		}
		return fmt.Sprintf("the clock of this machine is %s %s the broker's; set the clock (or switch automatic time on) and try again", off, way)
	case wire.PairAudience:
		return fmt.Sprintf("%s is not the address under which the broker knows itself; use its public URL, as its operator tells it (setting public_urls)", r.Broker)
	case wire.PairUnavailable:
		if r.RetryAfter > 0 {
			return fmt.Sprintf("the broker asks for patience: too many requests from here or in all; try again in %s", r.RetryAfter)
		}
		return "the broker asks for patience; try again in a few minutes"
	case "":
		if r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed {
			return fmt.Sprintf("%s does not know how to pair (answer %d); is it the broker's address, and is the broker up to date?", r.Broker, r.Status)
		}
		return fmt.Sprintf("%s answers %d %s instead of the broker; look at the proxy in front of it", r.Broker, r.Status, http.StatusText(r.Status))
	}
	return fmt.Sprintf("the broker refuses: %s (%s)", strings.TrimSuffix(Printable(r.Description), "."), Printable(string(r.Code)))
}

// Printable keeps a broker's text from steering the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}

// unreachable says in words why the broker could not be asked.
func unreachable(broker *url.URL, err error) error {
	var dns *net.DNSError
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	why := ""
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		why = fmt.Sprintf("no host is called %s; check the address", broker.Hostname())
	case errors.As(err, &dns):
		why = fmt.Sprintf("the name %s cannot be looked up now; is this machine online?", broker.Hostname())
	case errors.As(err, &host):
		why = fmt.Sprintf("its certificate is for another host than %s; check the address", broker.Hostname())
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		why = "its certificate is not valid at this time; look at the clock of this machine first, then tell the broker's operator"
	case errors.As(err, &unknown), errors.As(err, &verify):
		why = "its certificate is not signed by an authority that this machine trusts. A private authority has to be added to the system's (or named in SSL_CERT_FILE); a proxy that opens TLS looks like this too"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		why = "it does not speak TLS at this port; check the port"
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "nothing listens there; is the broker running, and is the port right?"
	case errors.Is(err, context.DeadlineExceeded):
		why = "it did not answer in time; check the address and the network"
	case errors.Is(err, context.Canceled):
		return err
	default:
		return fmt.Errorf("the broker at %s cannot be reached: %w", broker, err)
	}
	return fmt.Errorf("the broker at %s cannot be reached: %s (%w)", broker, why, err)
}

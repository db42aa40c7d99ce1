package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"siyuan-broker/tenants"
)

// User codes have eight letters of an alphabet without vowels, so that they
// spell nothing and are hard to mistake: 25 billion of them, each good for ten
// minutes and a few guesses.
const (
	userAlphabet = "BCDFGHJKLMNPQRSTVWXZ"
	userLetters  = 8
)

// ServeDevice begins a sign-in on a device without a browser (RFC 8628). There
// is no link with the code in it: who types the code has the device before them.
func (s *Server) ServeDevice(w http.ResponseWriter, r *http.Request) {
	if !s.open(w, r, http.MethodPost) {
		return
	}
	body, err := s.device(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, body)
}

type deviceAnswer struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URI        string `json:"verification_uri"`
	ExpiresIn  int    `json:"expires_in"`
	Interval   int    `json:"interval"`
}

func (s *Server) device(w http.ResponseWriter, r *http.Request) (deviceAnswer, error) {
	if err := s.limit(r, "device", s.address(r), s.cfg.Limits.DevicePerAddress, time.Minute); err != nil {
		return deviceAnswer{}, err
	}
	v, err := form(w, r)
	if err != nil {
		return deviceAnswer{}, err
	}
	id, err := clientID(r, v)
	if err != nil {
		return deviceAnswer{}, err
	}
	if _, err := s.client(r.Context(), id); err != nil {
		return deviceAnswer{}, err
	}
	resource, ok := s.resource(v["resource"])
	if !ok {
		return deviceAnswer{}, refuse("invalid_target", "resource is not served here. Use %s.", s.cfg.Resources[0])
	}
	code, err := s.secret(devicePrefix, tenants.ID{})
	if err != nil {
		return deviceAnswer{}, err
	}
	d := tenants.DeviceRequest{
		Hash: tenants.HashSecret(code), ClientID: id, Scope: scopeOf(askedFor(v.Get("scope"))), Resource: resource, ExpiresAt: s.now().Add(deviceLife),
	}
	for range 3 { // two devices with one code are as good as impossible
		if d.UserCode, err = s.userCode(); err != nil {
			return deviceAnswer{}, err
		}
		if err = s.cfg.Store.CreateDeviceRequest(r.Context(), d); !errors.Is(err, tenants.ErrConflict) {
			break
		}
	}
	if err != nil {
		return deviceAnswer{}, err
	}
	return deviceAnswer{
		DeviceCode: code, UserCode: d.UserCode[:4] + "-" + d.UserCode[4:], URI: s.cfg.Issuer + VerifyPath,
		ExpiresIn: int(deviceLife / time.Second), Interval: int(devicePoll / time.Second),
	}, nil
}

// userCode draws letters without favouring any.
func (s *Server) userCode() (string, error) {
	code := make([]byte, 0, userLetters)
	one := make([]byte, 1)
	for len(code) < userLetters {
		if _, err := io.ReadFull(s.cfg.Rand, one); err != nil {
			return "", fmt.Errorf("random user code: %w", err)
		}
		if n := int(one[0]); n < 256/len(userAlphabet)*len(userAlphabet) {
			code = append(code, userAlphabet[n%len(userAlphabet)])
		}
	}
	return string(code), nil
}

// typedCode is a user code as people write it: any case, with dashes or spaces.
func typedCode(s string) (string, bool) {
	code := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		case r == '-' || r == ' ' || r == '\t' || r == '‐' || r == '–' || r == '—' || r == '\u3000':
			return -1
		}
		return '?'
	}, strings.TrimSpace(s))
	return code, len(code) == userLetters && strings.Trim(code, userAlphabet) == ""
}

func (s *Server) tokenByDevice(ctx context.Context, client string, v url.Values) (issued, error) {
	code := v.Get("device_code")
	if !strings.HasPrefix(code, devicePrefix) {
		return issued{}, invalidGrant("The device code is not valid.")
	}
	now := s.now()
	d, err := s.cfg.Store.PollDevice(ctx, tenants.HashSecret(code), now)
	if errors.Is(err, tenants.ErrNotFound) {
		return issued{}, invalidGrant("The device code is not valid.")
	}
	if err != nil {
		return issued{}, err
	}
	switch {
	case d.ClientID != client:
		return issued{}, invalidGrant("The device code was given to another client.")
	case d.Denied:
		return issued{}, refuse("access_denied", "The person said no.")
	case !d.Answered() && !now.Before(d.ExpiresAt):
		return issued{}, refuse("expired_token", "The device code has expired. Begin again.")
	case !d.Answered() && !d.PolledAt.IsZero() && now.Sub(d.PolledAt) < devicePoll:
		return issued{}, refuse("slow_down", "Ask every %d seconds.", int(devicePoll/time.Second))
	case !d.Answered():
		return issued{}, refuse("authorization_pending", "The person has not answered yet.")
	}
	return s.exchange(ctx, d.TenantID, d.Hash, func(c tenants.OAuthCode) error {
		if c.ClientID != client {
			return invalidGrant("The device code was given to another client.")
		}
		return s.sameResource(v["resource"], c.Resource)
	})
}

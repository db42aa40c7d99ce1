package pairing

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"siyuan-broker/contract/wire"
	"siyuan-broker/tenants"
)

// claims makes a wire.Proof readable for the JWT library, which is not to judge
// it: what is wrong is told to the connector's owner in our words.
type claims struct{ wire.Proof }

func (claims) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }
func (claims) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (claims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }
func (claims) GetIssuer() (string, error)                   { return "", nil }
func (claims) GetSubject() (string, error)                  { return "", nil }
func (claims) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }

// refusal is an answer other than success.
type refusal struct {
	status int
	wire.PairError
	retryAfter time.Duration
}

// Error is for the log.
func (r *refusal) Error() string { return fmt.Sprintf("%s: %s", r.Code, r.Description) }

func refuse(status int, code wire.PairCode, format string, args ...any) *refusal {
	return &refusal{status: status, PairError: wire.PairError{Code: code, Description: fmt.Sprintf(format, args...)}}
}

// errNoKey is what a key lookup answers for a signer it does not know.
var errNoKey = errors.New("unknown key")

// prove checks a signed request. find gives the key of the signer, from what it
// says before the signature is checked: its errors other than errNoKey are
// returned as they are.
func (s *Service) prove(token, act string, find func(p wire.Proof) (ed25519.PublicKey, error)) (wire.Proof, error) {
	var c claims
	var findErr error
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		if t.Header["typ"] != wire.ProofType || kid == "" || kid != c.Subject || c.Act != act || !c.Valid() {
			return nil, errNoKey
		}
		key, err := find(c.Proof)
		if err == nil && (len(key) != ed25519.PublicKeySize || tenants.Fingerprint(key) != kid) {
			err = errNoKey
		}
		findErr = err
		return key, err
	})
	now := s.Now()
	switch {
	case findErr != nil && !errors.Is(findErr, errNoKey):
		return c.Proof, findErr
	case err != nil:
		return c.Proof, refuse(401, wire.PairBadProof, "The request is not signed by the key it names.")
	case !slices.Contains(s.Audiences, c.Audience):
		return c.Proof, refuse(401, wire.PairAudience, "The request was made for another address. Use the broker's public URL, as its operator tells it.")
	case now.Sub(time.Unix(c.IssuedAt, 0)).Abs() > wire.TokenSkew:
		r := refuse(401, wire.PairClock, "The clock of this machine is more than %d s off.", int(wire.TokenSkew.Seconds()))
		r.BrokerTime = now.Unix()
		return c.Proof, r
	}
	return c.Proof, nil
}

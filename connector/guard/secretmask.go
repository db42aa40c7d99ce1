package guard

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"siyuan-broker/contract"
)

// secretMask hides what stands in SiYuan's settings under secret names (the API
// token, the access code, keys of AI, passwords of sync and publishing) in texts of
// plugins, which read the settings as they like. Only these very values are
// hidden, also as JSON, addresses and base64 spell them: a plugin's answer may be
// full of ids and digests that look like keys and are none.
type secretMask struct {
	long  *strings.Replacer
	short []string // hidden where they stand alone, since they are part of ordinary words
}

// A secret of fewer characters than this is none: it could be any word.
const shortSecret = 4

// secretMask makes the mask of the settings as they are now.
func (g *Guard) secretMask(ctx context.Context) (*secretMask, error) {
	raw, err := g.r.RawConf(ctx)
	if err != nil {
		return nil, err
	}
	return newSecretMask(raw)
}

func newSecretMask(raw json.RawMessage) (*secretMask, error) {
	var conf map[string]any
	if err := json.Unmarshal(raw, &conf); err != nil {
		return nil, contract.Internalf(err, "read the configuration")
	}
	known := confMask{least: shortSecret}
	known.learn(conf, false)
	m := &secretMask{}
	var long []string
	for _, secret := range known.secrets {
		if len(secret) < leastSecret {
			m.short = append(m.short, secret)
			continue
		}
		long = append(long, spellings(secret)...)
	}
	slices.SortFunc(long, func(a, b string) int { return len(b) - len(a) }) // one may be part of another
	pairs := make([]string, 0, 2*len(long))
	for _, s := range long {
		pairs = append(pairs, s, masked)
	}
	m.long = strings.NewReplacer(pairs...)
	return m, nil
}

// spellings are the ways in which a secret is usually written into a text.
func spellings(secret string) []string {
	quoted := func(html bool) string {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(secret) != nil {
			return secret
		}
		return strings.Trim(strings.TrimSpace(b.String()), `"`)
	}
	plain := []byte(secret)
	return []string{
		secret, quoted(true), quoted(false), url.QueryEscape(secret), url.PathEscape(secret),
		base64.RawStdEncoding.EncodeToString(plain), base64.RawURLEncoding.EncodeToString(plain),
	}
}

func (m *secretMask) text(text string) string {
	text = m.long.Replace(text)
	for _, s := range m.short {
		text = replaceAlone(text, s)
	}
	return text
}

// replaceAlone masks a word where no letter or digit is beside it.
func replaceAlone(text, word string) string {
	part := func(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return b.String() + text[from:]
		}
		at, end := from+i, from+i+len(word)
		b.WriteString(text[from:at])
		if part(utf8.DecodeLastRuneInString(text[:at])) || part(utf8.DecodeRuneInString(text[end:])) {
			b.WriteString(word)
		} else {
			b.WriteString(masked)
		}
		from = end
	}
}

// extension masks what a plugin says of one of its tools. A schema that is none
// any more without the secret is left out.
func (m *secretMask) extension(e Extension) Extension {
	e.Title, e.Description = m.text(e.Title), m.text(e.Description)
	if schema := m.text(string(e.Schema)); schema != string(e.Schema) {
		e.Schema = json.RawMessage(schema)
		if !json.Valid(e.Schema) {
			e.Schema = nil
		}
	}
	return e
}

// withoutSecrets masks what a tool said. Where the settings cannot be read, all of
// it is withheld: the call was made, and is not made again.
func (g *Guard) withoutSecrets(ctx context.Context, s Said) Said {
	if s.Text == "" {
		return s
	}
	m, err := g.secretMask(ctx)
	if err != nil {
		g.opt.Logger.Warn("what a plugin said is withheld, since SiYuan's settings cannot be read", "error", err.Error())
		s.Text, s.Withheld = "", true
		return s
	}
	s.Text = m.text(s.Text)
	return s
}

package guard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"siyuan-broker/contract"
)

// masked stands in place of a secret.
const masked = "[REDACTED]"

// openSections are the parts of the configuration whose texts may be shown: how
// SiYuan looks and behaves. Everything else (accounts, sync, AI, publishing,
// secrets, what a later version adds) shows its texts as masked.
var openSections = []string{"appearance", "editor", "export", "fileTree", "flashcard", "graph", "lang", "langs", "logLevel", "search", "snippet", "tag"}

// openSystem are the texts shown of the section that also has ids, paths and the
// machine's name.
var openSystem = []string{"kernelVersion", "os", "osPlatform", "container"}

// secretName is a key under which nothing is shown, of whatever type.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|passcode|pwd|cookie|authoriz|auth_?code|credential|jwt|ticket|salt|nonce|verifier|signature|session|bearer|oauth|key$`)

// tokenRun is a stretch that words are not made of, but keys and tokens are.
var tokenRun = regexp.MustCompile(`[A-Za-z0-9_+=\-]{16,}`)

// userInfo is a name and password in an address.
var userInfo = regexp.MustCompile(`://[^/\s@]*@`)

// maskConf decodes the kernel's configuration and masks what is or may be a
// secret, before anything else can look at it. Three nets lie under each other:
// the section, the name of the key, and the look of the text; and a text that
// stands under a secret name is masked wherever it recurs.
func maskConf(raw json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var conf map[string]any
	if err := d.Decode(&conf); err != nil {
		return nil, contract.Internalf(errors.New("guard: the configuration is no JSON object"), "read the configuration")
	}
	delete(conf, "uiLayout") // the open tabs, with titles of notes
	m := confMask{}
	m.learn(conf, false)
	for section, v := range conf {
		conf[section] = m.mask(v, slices.Contains(openSections, section), section == "system", secretName.MatchString(section))
	}
	return conf, nil
}

// maskText masks in a text of SiYuan's own, such as what it says about a sync,
// what is or may be a secret: names and passwords in addresses, what looks like a
// key, and what stands in the configuration under a secret name.
func maskText(text string, raw json.RawMessage) (string, error) {
	var conf map[string]any
	if err := json.Unmarshal(raw, &conf); err != nil {
		return "", contract.Internalf(errors.New("guard: the configuration is no JSON object"), "read the configuration")
	}
	m := confMask{}
	m.learn(conf, false)
	// The longest first: one may be part of another.
	slices.SortFunc(m.secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range m.secrets {
		text = strings.ReplaceAll(text, secret, masked)
	}
	text = userInfo.ReplaceAllString(text, "://"+masked+"@")
	return tokenRun.ReplaceAllStringFunc(text, func(run string) string {
		if m.suspicious(run) {
			return masked
		}
		return run
	}), nil
}

// confMask knows the texts that stand under secret names.
type confMask struct {
	secrets []string
	least   int // how long one is at least; 0: leastSecret
}

// leastSecret is how long a text is at least to be masked wherever it recurs:
// shorter ones are part of ordinary words.
const leastSecret = 6

func (m *confMask) learn(v any, secret bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			m.learn(member, secret || secretName.MatchString(key))
		}
	case []any:
		for _, e := range v {
			m.learn(e, secret)
		}
	case string:
		if secret && len(v) >= cmp.Or(m.least, leastSecret) {
			m.secrets = append(m.secrets, v)
		}
	}
}

// mask shows a value as far as may be: open says that texts of its section are
// shown, system that only those of openSystem are.
func (m *confMask) mask(v any, open, system, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = m.mask(member, open || system && slices.Contains(openSystem, key), false, secret || secretName.MatchString(key))
		}
		return v
	case []any:
		for i := range v {
			v[i] = m.mask(v[i], open, false, secret)
		}
		return v
	case json.Number:
		if secret {
			return masked
		}
	case string:
		if v != "" && (secret || !open || m.suspicious(v)) {
			return masked
		}
	}
	return v
}

func (m *confMask) suspicious(text string) bool {
	if userInfo.MatchString(text) || slices.ContainsFunc(m.secrets, func(s string) bool { return strings.Contains(text, s) }) {
		return true
	}
	for _, run := range tokenRun.FindAllString(text, -1) {
		digits := strings.ContainsFunc(run, unicode.IsDigit)
		letters := strings.ContainsFunc(run, unicode.IsLetter)
		if digits && letters && !contract.IsID(run) {
			return true
		}
	}
	return false
}

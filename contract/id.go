package contract

import "crypto/rand"

// IsID reports whether s has the form of SiYuan's ids: 14 digits, a dash, seven
// lower-case letters or digits. Notebooks, documents, blocks, databases, rows
// and cards share it. The digits are not checked to be a date; the kernel does
// not either.
func IsID(s string) bool {
	if len(s) != 22 || s[14] != '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		digit := c >= '0' && c <= '9'
		if i < 14 && !digit || i > 14 && !digit && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// RandomID is a name for a record of ours: prefix, underscore, 26 letters of
// base32 (130 random bits). It never collides and says what it names.
func RandomID(prefix string) string { return prefix + "_" + rand.Text() }

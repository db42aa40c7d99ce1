package contract

import "fmt"

// Level says what a principal may do in one notebook. Levels form a chain
// none < r < rw < rwd; combining restrictions is always Min.
type Level uint8

// The four levels, in order. The zero value grants nothing.
const (
	None            Level = iota // the notebook does not exist for the caller
	Read                         // r: see
	ReadWrite                    // rw: create and edit
	ReadWriteDelete              // rwd: also delete, and move content out
)

var levelNames = [...]string{None: "none", Read: "r", ReadWrite: "rw", ReadWriteDelete: "rwd"}

// ParseLevel reads none, r, rw or rwd.
func ParseLevel(s string) (Level, error) {
	for l, name := range levelNames {
		if s == name {
			return Level(l), nil
		}
	}
	return None, fmt.Errorf("level %q: want none, r, rw or rwd", s)
}

// String is the settled spelling: none, r, rw or rwd.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "none"
}

// Allows reports whether l is enough where need is asked for.
func (l Level) Allows(need Level) bool { return l >= need }

// Min is the greatest level that none of the given ones exceeds. Without
// arguments it is None: an absent restriction must be spelled out.
func Min(levels ...Level) Level {
	if len(levels) == 0 {
		return None
	}
	least := ReadWriteDelete
	for _, l := range levels {
		least = min(least, l)
	}
	return least
}

// MarshalText writes the settled spelling.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText accepts exactly the settled spellings.
func (l *Level) UnmarshalText(b []byte) error {
	v, err := ParseLevel(string(b))
	if err != nil {
		return err
	}
	*l = v
	return nil
}

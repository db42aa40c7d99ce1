package postgres

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"siyuan-broker/contract"
	"siyuan-broker/tenants"
)

// The domain says "absent" with zero values, the schema with NULL. These turn
// one into the other.

func idOrNull(id tenants.ID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// levelOrNull is for updates: nil leaves the column alone.
func levelOrNull(l *contract.Level) any {
	if l == nil {
		return nil
	}
	return l.String()
}

// asJSON sends a value as the text of a jsonb column.
type asJSON struct{ v any }

// Value implements driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	b, err := json.Marshal(j.v)
	return string(b), err
}

// jsonOrNull is for updates: nil leaves the column alone.
func jsonOrNull[T any](v *T) any {
	if v == nil {
		return nil
	}
	return asJSON{v}
}

// intoTime scans a timestamp, NULL as the zero time.
type intoTime struct{ to *time.Time }

// Scan implements sql.Scanner.
func (v intoTime) Scan(src any) error {
	switch t := src.(type) {
	case nil:
		*v.to = time.Time{}
	case time.Time:
		*v.to = t.UTC()
	default:
		return fmt.Errorf("time column holds %T", src)
	}
	return nil
}

// intoID scans an id, NULL as the nil id.
type intoID struct{ to *tenants.ID }

// Scan implements sql.Scanner.
func (v intoID) Scan(src any) error {
	if src == nil {
		*v.to = uuid.Nil
		return nil
	}
	return v.to.Scan(src)
}

// intoLevel scans an access_level.
type intoLevel struct{ to *contract.Level }

// Scan implements sql.Scanner.
func (v intoLevel) Scan(src any) error {
	s, ok := src.(string)
	if !ok {
		return fmt.Errorf("level column holds %T", src)
	}
	return v.to.UnmarshalText([]byte(s))
}

// intoText scans text, NULL as empty.
type intoText struct{ to *string }

// Scan implements sql.Scanner.
func (v intoText) Scan(src any) error {
	switch s := src.(type) {
	case nil:
		*v.to = ""
	case string:
		*v.to = s
	default:
		return fmt.Errorf("text column holds %T", src)
	}
	return nil
}

// intoHash scans the hash of a code or token.
type intoHash struct{ to *tenants.SecretHash }

// Scan implements sql.Scanner.
func (v intoHash) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(v.to) {
		return fmt.Errorf("hash column holds %T", src)
	}
	copy(v.to[:], b)
	return nil
}

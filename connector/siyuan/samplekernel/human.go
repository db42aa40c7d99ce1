package samplekernel

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"time"
)

// docTime reads the time at the start of an id or in an `updated` attribute.
// Digits that are no date give the fallback.
func docTime(s string, fallback time.Time) time.Time {
	if len(s) >= 14 {
		if t, err := time.ParseInLocation("20060102150405", s[:14], fallback.Location()); err == nil {
			return t
		}
	}
	return fallback
}

func itoa(n int) string { return strconv.Itoa(n) }

func unixTime(sec int64) time.Time { return time.Unix(sec, 0) }

// humanSize writes bytes in powers of a thousand with two digits: 14.84 kB.
func humanSize(n int) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB"} {
		if f /= 1000; f < 1000 || unit == "TB" {
			return fmt.Sprintf("%.2f %s", f, unit)
		}
	}
	return ""
}

// humanTime writes a time and how long ago it was: 2024-01-02 10:00:00, 2 years ago.
func humanTime(t, now time.Time) string {
	return t.Format("2006-01-02 15:04:05") + ", " + ago(now.Sub(t))
}

func ago(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		span time.Duration
		name string
	}{{365 * day, "year"}, {30 * day, "month"}, {7 * day, "week"}, {day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int(d / u.span); n > 0 {
			if n > 1 {
				u.name += "s"
			}
			return fmt.Sprintf("%d %s ago", n, u.name)
		}
	}
	return "now"
}

// assetHash is the etag form a kernel keeps in the assets table: a version byte
// and a SHA-1, for files up to one block of 4 MiB.
func assetHash(name string) string {
	raw, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	sum := sha1.Sum(raw)
	return base64.URLEncoding.EncodeToString(append([]byte{0x16}, sum[:]...))
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

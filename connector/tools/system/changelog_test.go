package system

import (
	"slices"
	"testing"
)

func TestAChangelogIsSplitIntoVersions(t *testing.T) {
	t.Parallel()
	entries := parseChangelog("# Changelog\n\nForm.\n\n## [Unreleased]\n\n### Added\n\n* one\n* two\n\n## [1.2.0] - 2026-12-01\n\n- three\n")
	if len(entries) != 2 || entries[0].Version != "Unreleased" || !slices.Equal(entries[0].Items, []string{"one", "two"}) {
		t.Fatalf("%+v", entries)
	}
	if e := entries[1]; e.Version != "1.2.0" || e.Date != "2026-12-01" || e.RawMarkdown != "- three" {
		t.Errorf("%+v", e)
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, than string
		want          bool
	}{{"1.10.0", "1.9.0", true}, {"1.9.0", "1.10.0", false}, {"1.0.0", "v1.0.0", false}, {"Unreleased", "9.0.0", true}, {"1.0.0", "1.0.0-rc.1", true}} {
		if got := newer(c.version, c.than); got != c.want {
			t.Errorf("%s newer than %s: %v", c.version, c.than, got)
		}
	}
}

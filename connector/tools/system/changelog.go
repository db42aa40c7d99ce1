package system

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"siyuan-broker/connector/tools"
	"siyuan-broker/contract"
	catalogue "siyuan-broker/contract/tools"
)

const changelogEntries = 5

func changelog(_ context.Context, r *tools.Request, in catalogue.SystemChangelogIn) (out catalogue.SystemChangelogOut, err error) {
	all := parseChangelog(ours)
	out = catalogue.SystemChangelogOut{TotalEntries: len(all), Entries: []catalogue.ChangelogEntry{}}
	wanted := func(e catalogue.ChangelogEntry) bool {
		return (in.Version == "" || trimV(e.Version) == trimV(in.Version)) && (in.FromVersion == "" || newer(e.Version, in.FromVersion))
	}
	if in.Version != "" && !slices.ContainsFunc(all, func(e catalogue.ChangelogEntry) bool { return trimV(e.Version) == trimV(in.Version) }) {
		return out, contract.Fail(contract.NotFound, "There is no version %q.", in.Version).WithHint("The newest is %s.", all[0].Version)
	}
	for _, e := range all {
		if wanted(e) {
			if !in.IncludeRaw {
				e.RawMarkdown = ""
			}
			out.Entries = append(out.Entries, e)
		}
	}
	shown := catalogue.Fit(out.Entries, or(in.Limit, changelogEntries), r.Budget, catalogue.Chars[catalogue.ChangelogEntry])
	if len(shown) < len(out.Entries) {
		out.Truncated = true
		out.Hint = fmt.Sprintf("%d entries match; raise limit, or name a version.", len(out.Entries))
	}
	out.Entries, out.ReturnedEntries = shown, len(shown)
	return out, nil
}

func trimV(version string) string { return strings.TrimPrefix(strings.ToLower(version), "v") }

// newer orders versions; what is not released yet is newer than every release.
func newer(version, than string) bool {
	v, t := "v"+trimV(version), "v"+trimV(than)
	if !semver.IsValid(v) {
		return semver.IsValid(t)
	}
	return semver.Compare(v, t) > 0
}

// versionHeading is a version in the form of Keep a Changelog.
var versionHeading = regexp.MustCompile(`(?m)^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?.*$`)

// parseChangelog splits a changelog into versions, the newest first as written.
func parseChangelog(text string) []catalogue.ChangelogEntry {
	var entries []catalogue.ChangelogEntry
	heads := versionHeading.FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		e := catalogue.ChangelogEntry{Version: text[h[2]:h[3]], Items: []string{}, RawMarkdown: strings.TrimSpace(text[h[1]:end])}
		if h[4] >= 0 {
			e.Date = text[h[4]:h[5]]
		}
		for _, line := range strings.Split(e.RawMarkdown, "\n") {
			if item, ok := strings.CutPrefix(line, "* "); ok {
				e.Items = append(e.Items, item)
			} else if item, ok := strings.CutPrefix(line, "- "); ok {
				e.Items = append(e.Items, item)
			}
		}
		entries = append(entries, e)
	}
	return entries
}

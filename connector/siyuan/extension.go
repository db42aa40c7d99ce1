package siyuan

import (
	"context"
	"encoding/json"
)

// The endpoints of plugins, snippets and settings are the ones whose answers
// were not recorded: they are passed on as JSON, for callers that look at
// single fields and expect any of them to be absent.

// PackageKind is a kind of bazaar package, as it is spelled in endpoint names.
type PackageKind string

// The kinds of bazaar packages.
const (
	PackagePlugin   PackageKind = "Plugin"
	PackageWidget   PackageKind = "Widget"
	PackageTheme    PackageKind = "Theme"
	PackageIcon     PackageKind = "Icon"
	PackageTemplate PackageKind = "Template"
)

func (k PackageKind) valid() bool {
	switch k {
	case PackagePlugin, PackageWidget, PackageTheme, PackageIcon, PackageTemplate:
		return true
	}
	return false
}

// frontend is the kernel's name of the program that plugins are asked for.
const frontend = "desktop"

// InstalledPackages lists installed packages by keyword.
func (r *Reader) InstalledPackages(ctx context.Context, kind PackageKind, keyword string) (json.RawMessage, error) {
	return r.packages(ctx, "bazaar/getInstalled", kind, keyword)
}

// BazaarPackages lists packages of the public bazaar by keyword; the kernel
// fetches them from the internet.
func (r *Reader) BazaarPackages(ctx context.Context, kind PackageKind, keyword string) (json.RawMessage, error) {
	return r.packages(ctx, "bazaar/getBazaar", kind, keyword)
}

func (r *Reader) packages(ctx context.Context, prefix string, kind PackageKind, keyword string) (json.RawMessage, error) {
	if !kind.valid() {
		return nil, badArgument(prefix, "unknown kind of package")
	}
	return read[json.RawMessage](ctx, r, prefix+string(kind),
		args{"frontend": frontend, "keyword": keyword}, slow|direct)
}

// PackageReadme is the rendered readme of a bazaar package.
func (r *Reader) PackageReadme(ctx context.Context, kind, repoURL, repoHash string) (json.RawMessage, error) {
	return read[json.RawMessage](ctx, r, "bazaar/getBazaarPackageREADME",
		args{"packageType": kind, "repoURL": repoURL, "repoHash": repoHash}, slow|direct)
}

// InstallPlugin downloads and installs a plugin.
func (w *Writer) InstallPlugin(ctx context.Context, name, repoURL, repoHash string) error {
	return exec(ctx, w, "bazaar/installBazaarPlugin", args{
		"frontend": frontend, "packageName": name, "repoURL": repoURL, "repoHash": repoHash, "keyword": "",
	}, slow)
}

// UninstallPlugin removes a plugin.
func (w *Writer) UninstallPlugin(ctx context.Context, name string) error {
	return exec(ctx, w, "bazaar/uninstallBazaarPlugin",
		args{"frontend": frontend, "packageName": name, "keyword": ""}, slow)
}

// EnablePlugin switches a plugin on or off.
func (w *Writer) EnablePlugin(ctx context.Context, name string, enabled bool) error {
	return exec(ctx, w, "petal/setPetalEnabled",
		args{"packageName": name, "enabled": enabled, "app": appName}, 0)
}

// SetSnippets replaces all CSS and JS snippets.
func (w *Writer) SetSnippets(ctx context.Context, snippets []json.RawMessage) error {
	return exec(ctx, w, "snippet/setSnippet", args{"snippets": list(snippets)}, 0)
}

// RemoveSnippet removes a snippet; a missing one is not an error.
func (w *Writer) RemoveSnippet(ctx context.Context, snippet ID) error {
	return exec(ctx, w, "snippet/removeSnippet", args{"id": snippet}, 0)
}

// Section is a part of the settings, as it is spelled in endpoint names.
type Section string

// The sections that SetSection can replace.
const (
	SectionAppearance Section = "Appearance"
	SectionEditor     Section = "Editor"
	SectionExport     Section = "Export"
	SectionFiletree   Section = "Filetree"
	SectionFlashcard  Section = "Flashcard"
	SectionSearch     Section = "Search"
	SectionSnippet    Section = "Snippet"
)

// SetSection replaces a section of the settings. The body must be the whole
// section as RawConf shows it: the kernel takes what is absent for zero.
func (w *Writer) SetSection(ctx context.Context, section Section, conf json.RawMessage) error {
	switch section {
	case SectionAppearance, SectionEditor, SectionExport, SectionFiletree,
		SectionFlashcard, SectionSearch, SectionSnippet:
		return exec(ctx, w, "setting/set"+string(section), conf, 0)
	}
	return badArgument("setting/set", "unknown section")
}

// SetKeymap replaces the keyboard shortcuts.
func (w *Writer) SetKeymap(ctx context.Context, keymap json.RawMessage) error {
	return exec(ctx, w, "setting/setKeymap", args{"data": keymap}, 0)
}

// Sync starts a synchronisation; upload says which way a manual one goes.
func (w *Writer) Sync(ctx context.Context, upload bool) error {
	return exec(ctx, w, "sync/performSync", args{"upload": upload, "mobileSwitch": false}, slow|queued)
}

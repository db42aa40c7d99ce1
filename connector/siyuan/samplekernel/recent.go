package samplekernel

import (
	"path"
	"slices"
)

// maxRecents bounds the list of recently used documents.
const maxRecents = 32

// recentDoc is a document somebody looked at; times are in seconds.
type recentDoc struct {
	RootID   string `json:"rootID"`
	Icon     string `json:"icon,omitempty"`
	Title    string `json:"title"`
	ViewedAt int64  `json:"viewedAt,omitempty"`
	ClosedAt int64  `json:"closedAt,omitempty"`
	OpenAt   int64  `json:"openAt,omitempty"`
}

func storageRoutes() map[string]route {
	const p = "/api/storage/"
	return map[string]route{
		p + "getRecentDocs":           {serve: getRecentDocs, noBody: true},
		p + "updateRecentDocOpenTime": {serve: recentTouch(func(r *recentDoc, t int64) { r.OpenAt, r.ViewedAt = t, t })},
		p + "updateRecentDocViewTime": {serve: recentTouch(func(r *recentDoc, t int64) { r.ViewedAt = t })},
		p + "getLocalStorage":         {serve: getLocalStorage, noBody: true},
		p + "getLocalStorageVal":      {serve: getLocalStorageVal},
		p + "getLocalStorageVals":     {serve: getLocalStorageVals},
		p + "setLocalStorageVal":      {serve: setLocalStorageVal},
		p + "removeLocalStorageVal":   {serve: removeLocalStorageVal},
		p + "removeLocalStorageVals":  {serve: removeLocalStorageVals},
		p + "getOutlineStorage":       {serve: getOutlineStorage},
	}
}

// loadStorage reads what front ends keep in the workspace.
func (k *Kernel) loadStorage() {
	k.local, k.recents = map[string]any{}, nil
	_ = readJSONFile(k.workspace("data", "storage", "local.json"), &k.local) // no file: nothing kept yet
	_ = readJSONFile(k.workspace("data", "storage", "recent-doc.json"), &k.recents)
}

// recentTouch notes that a document was looked at; an unknown one is ignored.
func recentTouch(set func(r *recentDoc, t int64)) handler {
	return func(k *Kernel, a args) (any, error) {
		id := a.str("rootID")
		d, ok := k.docs[id]
		if !ok {
			return nil, nil
		}
		at := slices.IndexFunc(k.recents, func(r recentDoc) bool { return r.RootID == id })
		if at < 0 {
			k.recents = append(k.recents, recentDoc{RootID: id})
			at = len(k.recents) - 1
		}
		k.recents[at].Title = d.title()
		k.recents[at].Icon = d.root.IALAttr("icon")
		set(&k.recents[at], k.now().Unix())
		if len(k.recents) > maxRecents {
			k.recents = k.recents[len(k.recents)-maxRecents:]
		}
		return nil, writeJSONFile(k.workspace("data", "storage", "recent-doc.json"), k.recents)
	}
}

func getRecentDocs(k *Kernel, a args) (any, error) {
	by := a.strOr("sortBy", "viewedAt")
	if by == "updated" {
		return k.recentlyUpdated(), nil
	}
	time := map[string]func(r recentDoc) int64{
		"openAt":   func(r recentDoc) int64 { return r.OpenAt },
		"closedAt": func(r recentDoc) int64 { return r.ClosedAt },
	}[by]
	if time == nil {
		time = func(r recentDoc) int64 { return r.ViewedAt }
	}
	out := []recentDoc{}
	for _, r := range k.recents {
		if _, open := k.docs[r.RootID]; open && time(r) > 0 {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b recentDoc) int { return int(time(b) - time(a)) })
	return out, nil
}

// recentlyUpdated lists documents as the index has them.
func (k *Kernel) recentlyUpdated() []recentDoc {
	out := []recentDoc{}
	for _, r := range k.rows("SELECT id, ial, hpath FROM blocks WHERE type = 'd' ORDER BY updated DESC LIMIT " + itoa(maxRecents)) {
		out = append(out, recentDoc{RootID: r["id"], Title: path.Base(r["hpath"]), Icon: parseIAL(r["ial"])["icon"]})
	}
	return out
}

func getLocalStorage(k *Kernel, _ args) (any, error) { return k.local, nil }

func getLocalStorageVal(k *Kernel, a args) (any, error) { return k.local[a.str("key")], nil }

func getLocalStorageVals(k *Kernel, a args) (any, error) {
	out := map[string]any{}
	for _, key := range a.strs("keys") {
		out[key] = k.local[key]
	}
	return out, nil
}

func (k *Kernel) saveLocal() error {
	return writeJSONFile(k.workspace("data", "storage", "local.json"), k.local)
}

func setLocalStorageVal(k *Kernel, a args) (any, error) {
	k.local[a.str("key")] = a["val"]
	return nil, k.saveLocal()
}

func removeLocalStorageVal(k *Kernel, a args) (any, error) {
	delete(k.local, a.str("key"))
	return nil, k.saveLocal()
}

func removeLocalStorageVals(k *Kernel, a args) (any, error) {
	for _, key := range a.strs("keys") {
		delete(k.local, key)
	}
	return nil, k.saveLocal()
}

func getOutlineStorage(_ *Kernel, a args) (any, error) {
	_ = a.str("docID")
	return map[string]any{}, nil
}

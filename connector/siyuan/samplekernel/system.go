package samplekernel

import (
	"os"
	"time"
)

// bootState is when the kernel began to boot and when it is ready.
type bootState struct{ began, ready time.Time }

// progress is what bootProgress tells, 100 from ready on.
func (b bootState) progress(now time.Time) int {
	if !now.Before(b.ready) {
		return 100
	}
	return min(99, int(100*now.Sub(b.began)/b.ready.Sub(b.began)))
}

func systemRoutes() map[string]route {
	return map[string]route{
		"/api/system/version":          {serve: getVersion, public: true, get: true, noBody: true},
		"/api/system/bootProgress":     {serve: getBootProgress, public: true, get: true, noBody: true},
		"/api/system/currentTime":      {serve: getCurrentTime, public: true, noBody: true},
		"/api/system/loginAuth":        {serve: loginAuth, public: true},
		"/api/system/getConf":          {serve: getConf, noBody: true},
		"/api/system/getWorkspaceInfo": {serve: getWorkspaceInfo, noBody: true},
		"/api/system/getWorkspaces":    {serve: getWorkspaces, noBody: true},
		"/api/system/getNetwork":       {serve: getNetwork, noBody: true},
		"/api/system/getChangelog":     {serve: getChangelog, noBody: true},
		"/api/ui/reloadFiletree":       {serve: nothing, noBody: true},
		"/api/ui/reloadTag":            {serve: nothing, noBody: true},
		"/api/ui/reloadProtyle":        {serve: nothing},
		"/api/ui/reloadAttributeView":  {serve: nothing},
		"/api/notification/pushMsg":    {serve: pushMsg},
		"/api/notification/pushErrMsg": {serve: pushMsg},
		"/api/setting/getPublish":      {serve: getPublish, noBody: true},
		"/api/sync/getSyncInfo":        {serve: getSyncInfo, noBody: true},
		"/api/sync/performSync":        {serve: nothing}, // success, as the real one says where no sync is set up
		"/api/snippet/getSnippet":      {serve: getSnippet},
		"/api/petal/loadPetals":        {serve: loadPetals},
		"/api/broadcast/getChannels":   {serve: getChannels, noBody: true},
		"/api/broadcast/postMessage":   {serve: postMessage},
		"/api/convert/pandoc":          {serve: pandoc},
		"/mcp":                         {raw: serveMCP},
	}
}

// nothing is the answer of endpoints that only tell a front end something.
func nothing(*Kernel, args) (any, error) { return nil, nil }

func getVersion(*Kernel, args) (any, error) { return Version, nil }

func getBootProgress(k *Kernel, _ args) (any, error) {
	progress := k.boot.progress(k.now())
	details := "v" + Version + " Loading documents..."
	if progress == 100 {
		details = "v" + Version + " Finishing boot..."
	}
	return map[string]any{"details": details, "progress": progress}, nil
}

func getCurrentTime(k *Kernel, _ args) (any, error) { return k.now().UnixMilli(), nil }

func loginAuth(k *Kernel, a args) (any, error) {
	if code := a.str("authCode"); k.opt.AuthCode == "" || code != k.opt.AuthCode {
		return nil, fail("The lock screen password is incorrect")
	}
	return nil, nil
}

// savedConf is the part of conf/conf.json that must survive a restart.
type savedConf struct {
	System struct {
		ID string `json:"id"`
	} `json:"system"`
	API struct {
		Token string `json:"token"`
	} `json:"api"`
}

// loadConf keeps the system id, and the token when none is given, over restarts.
func (k *Kernel) loadConf() error {
	name := k.workspace("conf", "conf.json")
	var c savedConf
	if err := readJSONFile(name, &c); err != nil && !os.IsNotExist(err) {
		c = savedConf{}
	}
	if c.System.ID == "" {
		c.System.ID = randomHex(k.opt.Rand, 16)
	}
	if k.opt.Token == "" && c.API.Token != "" {
		k.token = c.API.Token
	}
	c.API.Token, k.id = k.token, c.System.ID
	return writeJSONFile(name, c)
}

// getConf is a small part of the real answer: what clients read.
func getConf(k *Kernel, _ args) (any, error) {
	conf := map[string]any{
		"logLevel": "debug", "lang": "en_US", "readonly": false, "accessAuthCode": "", "isPublish": false, "dataIndexState": 0,
		"fileTree": map[string]any{"boxDocEnabled": true, "maxListCount": maxList, "sort": defaultSort, "recentDocsMaxListCount": maxRecents, "createDocAtTop": false},
		"search":   searchConf(),
		"system": map[string]any{
			"id": k.id, "name": "sample", "kernelVersion": Version, "os": "linux", "osPlatform": "debian", "container": "docker",
			"isMicrosoftStore": false, "isInsider": false, "homeDir": "", "workspaceDir": k.dir, "appDir": "", "confDir": k.workspace("conf"),
			"dataDir": k.workspace("data"), "networkServe": false, "networkServeTLS": false, "lockScreenMode": 0, "disabledFeatures": []any{}, "safeMode": false,
		},
		"editor":    map[string]any{"readOnly": false, "blockRefDynamicAnchorTextMaxLen": maxAnchor, "generateHistoryInterval": 10, "historyRetentionDays": 30},
		"export":    map[string]any{"addTitle": true, "blockRefMode": 4, "blockEmbedMode": 1, "markdownYFM": false},
		"flashcard": map[string]any{"newCardLimit": 20, "reviewCardLimit": 200},
		"tag":       map[string]any{"sort": 7},
		"sync":      map[string]any{"enabled": false, "stat": "Data synchronization has not been enabled", "synced": 0},
		"api":       map[string]any{"token": k.token},
		"publish":   map[string]any{"enable": false, "port": 6808, "auth": map[string]any{"enable": true, "accounts": []any{}}},
		"repo":      map[string]any{"key": nil, "indexRetentionDays": 180, "retentionIndexesDaily": 2},
	}
	return map[string]any{"conf": conf, "isPublish": false, "start": true}, nil
}

func searchConf() map[string]any {
	m := map[string]any{"limit": 64, "caseSensitive": false, "name": true, "alias": true, "memo": true, "ial": false}
	for name, t := range searchTypes() {
		m[name] = t.on
	}
	return m
}

func getWorkspaceInfo(k *Kernel, _ args) (any, error) {
	return map[string]any{"siyuanVer": Version, "workspaceDir": k.dir}, nil
}

func getWorkspaces(k *Kernel, _ args) (any, error) {
	return []any{map[string]any{"path": k.dir, "closed": false}}, nil
}

func getNetwork(*Kernel, args) (any, error) {
	return map[string]any{"proxy": map[string]any{"scheme": "", "host": "", "port": ""}}, nil
}

func getChangelog(*Kernel, args) (any, error) {
	return map[string]any{"html": "", "show": false}, nil
}

func pushMsg(k *Kernel, a args) (any, error) {
	if _, err := a.needText("msg"); err != nil {
		return nil, err
	}
	return map[string]any{"id": k.newID()[15:]}, nil
}

func getPublish(*Kernel, args) (any, error) {
	return map[string]any{"port": 0, "publish": map[string]any{
		"enable": false, "port": 6808, "auth": map[string]any{"enable": true, "accounts": []any{}}}}, nil
}

func getSyncInfo(*Kernel, args) (any, error) {
	return map[string]any{"kernel": "sample1", "kernels": []any{}, "stat": "Data synchronization has not been enabled", "synced": 0}, nil
}

func getSnippet(*Kernel, args) (any, error) { return map[string]any{"snippets": []any{}}, nil }

func loadPetals(*Kernel, args) (any, error) { return []any{}, nil }

func getChannels(*Kernel, args) (any, error) { return map[string]any{"channels": []any{}}, nil }

func postMessage(_ *Kernel, a args) (any, error) {
	return map[string]any{"channel": map[string]any{"name": a.str("channel"), "count": 0}}, nil
}

func pandoc(_ *Kernel, a args) (any, error) {
	if _, err := need[[]any](a, "args", "Array"); err != nil {
		return nil, err
	}
	return nil, fail("not found executable pandoc")
}

// deprecated endpoints answer with an error and a link, always.
func deprecated(p string) route {
	return route{serve: func(*Kernel, args) (any, error) {
		return nil, fail("[" + p + "] is deprecated, visit [https://github.com/siyuan-note/siyuan/issues/15727] for details")
	}}
}

// allRoutes is every path the kernel serves.
func allRoutes() map[string]route {
	all := map[string]route{}
	for _, routes := range []map[string]route{
		systemRoutes(), notebookRoutes(), filetreeRoutes(), blockReadRoutes(), blockWriteRoutes(), blockInfoRoutes(), attrRoutes(),
		queryRoutes(), searchRoutes(), outlineRoutes(), fileRoutes(), transactionRoutes(), databaseRoutes(),
		refRoutes(), searchMoreRoutes(), tagRoutes(), storageRoutes(), refMoveRoutes(), riffRoutes(), templateRoutes(), assetRoutes(), historyRoutes(), repoRoutes(), exportRoutes(), fileCopyRoutes(), graphRoutes(), criteriaRoutes(),
	} {
		for p, r := range routes {
			all[p] = r
		}
	}
	for _, p := range []string{"/api/attr/resetBlockAttrs", "/api/storage/setLocalStorage", "/api/av/searchAttributeViewNonRelationKey", "/api/system/reloadUI"} {
		all[p] = deprecated(p)
	}
	return all
}

// Endpoints lists the paths this kernel implements.
func Endpoints() []string { return sortedKeys(allRoutes()) }

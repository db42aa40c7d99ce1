package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	pages "siyuan-broker/broker/page"
	"siyuan-broker/tenants/postgres/pgtest"
)

// patience bounds every single step of a test.
const patience = 40 * time.Second

// Phone is the width of a phone, Desk that of a screen, in CSS pixels.
const (
	Phone = 390
	Desk  = 1280
)

// chromium is the one browser of this test binary; Main ends it.
var chromium struct {
	sync.Mutex
	ctx   context.Context
	close func()
	err   error
}

// Main runs the tests and ends the browser and the database server they used.
// Call it from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }
func Main(m *testing.M) int {
	code := pgtest.Main(m)
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.close != nil {
		chromium.close()
	}
	return code
}

func browser() (context.Context, error) {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil || chromium.err != nil {
		return chromium.ctx, chromium.err
	}
	program, err := find()
	if err != nil {
		chromium.err = err
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("lang", "en-US"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	quiet := func(string, ...any) {} // chromedp tells about every event it does not know yet
	ctx, stop := chromedp.NewContext(alloc, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	if err := chromedp.Do(ctx); err != nil {
		stop()
		stopAlloc()
		chromium.err = fmt.Errorf("start %s: %w", program, err)
		return nil, chromium.err
	}
	chromium.ctx, chromium.close = ctx, func() { stop(); stopAlloc() }
	return ctx, nil
}

func find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	for _, program := range []string{"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"} {
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
	}
	return "", errors.New("no Chromium: `.ci/deps test` installs it")
}

// Tab is a browser of its own (nothing is shared with other tabs, as in a
// private window) that shows one page. Its methods fail the test.
type Tab struct {
	t    testing.TB
	base string
	lang pages.Lang
	ctx  context.Context

	mu    sync.Mutex
	woes  []string // what the browser complained about
	width int64
}

// Open makes a tab that prefers a language, of a desk's width. The page's
// complaints fail the test when it ends at the latest.
func (w *World) Open(t testing.TB, lang pages.Lang) *Tab {
	t.Helper()
	parent, err := browser()
	must(t, err)
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	tab := &Tab{t: t, base: w.URL, lang: lang, ctx: ctx}
	t.Cleanup(func() {
		tab.mu.Lock()
		for _, woe := range tab.woes {
			t.Errorf("the browser complained: %s", woe)
		}
		tab.mu.Unlock()
		cancel()
	})
	must(t, chromedp.Do(ctx)) // the tab lives as long as the context of this
	must(t, chromedp.Listen(ctx, tab.listen))
	tab.run(
		call(network.Enable, network.EnableParams{}),
		call(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": string(lang)}}),
		call(cdplog.Enable, cdp.Empty{}), call(runtime.Enable, cdp.Empty{}),
	)
	tab.Width(Desk)
	return tab
}

// listen notes what should not happen on a page of ours.
func (b *Tab) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.woes = append(b.woes, fmt.Sprintf("%+v", *e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				b.woes = append(b.woes, "console: "+string(a.Value)+a.Description)
			}
		}
	case *cdplog.EventEntryAdded:
		// The status of a page itself is the test's business, not a complaint.
		ownStatus := e.Entry.Source == cdplog.EntrySourceNetwork && !strings.Contains(e.Entry.URL, pages.AssetsPath)
		if e.Entry.Level == cdplog.EntryLevelError && !ownStatus {
			b.woes = append(b.woes, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// call is a command of the browser's protocol as a step.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// run does steps within the patience of a test.
func (b *Tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.fail(err)
	}
}

// ask does one step that has a result.
func ask[T any](b *Tab, step chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, step)
	if err != nil {
		b.fail(err)
	}
	return v
}

// fail ends the test, showing where it was.
func (b *Tab) fail(err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	where, whereErr := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body ? document.body.innerText.slice(0, 2000) : "")`))
	b.t.Fatal(errors.Join(err, whereErr), "\nat ", where)
}

// Go opens a path of the broker, or an address.
func (b *Tab) Go(path string) {
	b.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.base + path
	}
	b.run(chromedp.Navigate(path))
}

// Fill types into a field, in place of what it holds.
func (b *Tab) Fill(selector, text string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible(chromedp.CSS(selector)))
	b.run(chromedp.Focus(chromedp.CSS(selector)))
	Eval[bool](b, `(document.activeElement.value = "") === ""`)
	b.run(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press clicks something and stays: what opens, opens on this page.
func (b *Tab) Press(selector string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

// Follow clicks something that leads to another page and waits for it.
func (b *Tab) Follow(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.fail(fmt.Errorf("follow %s: %w", selector, err))
	}
}

// Await waits until something that a selector names is visible.
func (b *Tab) Await(selector string) {
	b.t.Helper()
	b.run(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// See waits until the page shows a text.
func (b *Tab) See(text string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.PollFunction[bool](`text => document.body && document.body.innerText.includes(text)`,
			chromedp.WithPollingArgs(text), chromedp.WithPollingInterval(50*time.Millisecond)))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			b.fail(fmt.Errorf("the page does not say %q: %w", text, err))
		}
		// The page went away under the question, as one does that leads on by itself.
	}
}

// Text is what the page shows now.
func (b *Tab) Text() string {
	b.t.Helper()
	return ask(b, chromedp.Evaluate[string](`document.body.innerText`))
}

// Path is where the tab is, without host and query.
func (b *Tab) Path() string {
	b.t.Helper()
	return ask(b, chromedp.Evaluate[string](`location.pathname`))
}

// Eval runs a script in the page, whose policy does not hold for it, and gives
// its result.
func Eval[T any](b *Tab, script string) T {
	b.t.Helper()
	return ask(b, chromedp.Evaluate[T](script))
}

// Cookies are the cookies of this tab by name.
func (b *Tab) Cookies() map[string]*network.Cookie {
	b.t.Helper()
	all := map[string]*network.Cookie{}
	for _, c := range ask(b, func(ctx context.Context, t *chromedp.Target) ([]*network.Cookie, error) {
		r, err := cdp.Call(ctx, t, network.GetCookies, network.GetCookiesParams{})
		return r.Cookies, err
	}) {
		all[c.Name] = c
	}
	return all
}

// Width sets the width of the screen.
func (b *Tab) Width(width int64) {
	b.t.Helper()
	b.width = width
	height := int64(900)
	if width <= Phone {
		height = 844
	}
	b.run(call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width <= Phone}))
}

// WithoutScripts makes the tab one that runs none.
func (b *Tab) WithoutScripts() {
	b.t.Helper()
	b.run(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// TakeWoes gives what the browser complained about so far, and forgets it.
func (b *Tab) TakeWoes() []string {
	b.t.Helper()
	Eval[int](b, "0") // what came before has arrived after this
	b.mu.Lock()
	defer b.mu.Unlock()
	woes := b.woes
	b.woes = nil
	return woes
}

// SignIn signs a person of the World in and waits for their home.
func (b *Tab) SignIn(email string) {
	b.t.Helper()
	b.Go("/console/signin")
	b.Fill("#email", email)
	b.Fill("#password", Password)
	b.Follow("main form button.btn:not([type])")
	if at := b.Path(); at != "/console" {
		b.t.Fatalf("signing in led to %s:\n%s", at, b.Text())
	}
}

// Inspect looks at the page as it is, at a desk and on a phone, by day and by
// night, and fails the test for whatever is wrong with how it looks. With
// BROWSER_SHOTS=folder it leaves a picture of each.
func (b *Tab) Inspect(name string) {
	b.t.Helper()
	for _, width := range []int64{Desk, Phone} {
		b.Width(width)
		for _, scheme := range []string{"light", "dark"} {
			b.media(scheme)
			for _, p := range Eval[[]string](b, lookScript) {
				b.t.Errorf("%s at %d px, %s, %s: %s", name, width, scheme, b.lang, p)
			}
			b.shoot(fmt.Sprintf("%s-%s-%d-%s.png", name, b.lang, width, scheme))
		}
	}
	b.media("light")
	b.Width(Desk)
}

// media sets whether it is day or night. Nothing moves, so that a picture is not
// taken halfway.
func (b *Tab) media(scheme string) {
	b.t.Helper()
	b.run(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
}

func (b *Tab) shoot(file string) {
	b.t.Helper()
	folder := os.Getenv("BROWSER_SHOTS")
	if folder == "" {
		return
	}
	png := ask(b, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		layout, err := cdp.Call(ctx, t, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil {
			return nil, err
		}
		beyond := true
		shot, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond,
			Clip: &page.Viewport{Width: float64(b.width), Height: max(layout.CSSContentSize.Height, 600), Scale: 1}})
		return shot.Data, err
	})
	must(b.t, os.MkdirAll(folder, 0o755))
	must(b.t, os.WriteFile(filepath.Join(folder, file), png, 0o644))
}

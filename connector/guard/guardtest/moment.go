package guardtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"siyuan-broker/connector/siyuan"
)

// Moment is the tag of [AddMoment]: a state of Alpha.
const Moment = "sisyphustimeline_" + Alpha + "_draft"

// AddKey gives a sample home, by its workspace folder, the data repository key
// that no program makes.
func AddKey(t testing.TB, workspace string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Join(workspace, "repo"), 0o755))
	check(t, os.WriteFile(filepath.Join(workspace, "repo", "key"), []byte("a key"), 0o600))
}

// AddMoment makes the named state of the contract's examples, and changes Intro
// afterwards.
func AddMoment(t testing.TB, c *siyuan.Client, workspace string) {
	t.Helper()
	AddKey(t, workspace)
	ctx := context.Background()
	check(t, c.Writer().CreateSnapshot(ctx, "draft"))
	page, err := c.Reader().Snapshots(ctx, 1)
	check(t, err)
	check(t, c.Writer().TagSnapshot(ctx, page.Snapshots[0].ID, Moment))
	_, err = c.Writer().UpdateBlock(ctx, Intro, siyuan.Markdown, "Changed since.")
	check(t, err)
}

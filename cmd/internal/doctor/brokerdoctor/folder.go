package brokerdoctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"siyuan-broker/cmd/internal/doctor"
)

// dataFolder checks who may read and write what the broker keeps.
func (d *Doctor) dataFolder(context.Context) doctor.Finding {
	dir := d.Config.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return doctor.Nothing("%s does not exist yet: it is made when it is needed", dir)
	case err != nil:
		return doctor.Misconfigured("run doctor as the user the broker runs as", "%v", err)
	case !info.IsDir():
		return doctor.Misconfigured("name a folder in BROKER_DATA", "%s is not a folder", dir)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return doctor.Bad("run: chmod go-w "+dir, "other users may write in %s (mode %04o)", dir, info.Mode().Perm())
	}
	for _, name := range []string{"master.key", "up.json", "database.password"} {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			return doctor.Bad("run: chmod 600 "+file, "other users may read %s (mode %04o)", file, info.Mode().Perm())
		}
	}
	return doctor.Good("%s is closed to others", dir)
}

// Below these the database stops, or soon will.
const (
	diskWarn = 1 << 30
	diskFail = 100 << 20
)

func (d *Doctor) disk(context.Context) doctor.Finding {
	dir := d.Config.Data
	for dir != filepath.Dir(dir) { // the folder may not exist yet
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := d.Free(dir)
	const next = "free some space, or move the data folder (BROKER_DATA)"
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return doctor.Nothing("cannot be asked on this system")
	case err != nil:
		return doctor.Bad("", "%v", err)
	case free < diskFail:
		return doctor.Bad(next, "only %d MiB free in %s", free>>20, dir)
	case free < diskWarn:
		return doctor.Doubtful(next, "only %d MiB free in %s", free>>20, dir)
	}
	return doctor.Good("%d GiB free in %s", free>>30, dir)
}

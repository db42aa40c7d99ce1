//go:build unix

package pglocal

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user the server runs as when this process is root, which
// PostgreSQL refuses to be. nil: the server runs as this process does.
type account struct {
	name   string
	uid    uint32
	gid    uint32
	groups []uint32
}

// serverAccount finds postgres, else nobody, when this process is root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		return accountOf(u)
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody: start the broker as another user")
}

func accountOf(u *user.User) (*account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	a := &account{name: u.Username, uid: uint32(uid), gid: uint32(gid)}
	ids, err := u.GroupIds() // may fail without a group database; the primary group is enough then
	if err != nil {
		return a, nil
	}
	for _, id := range ids {
		if g, err := strconv.ParseUint(id, 10, 32); err == nil {
			a.groups = append(a.groups, uint32(g))
		}
	}
	return a, nil
}

// own makes dir a private folder of the server's account. It refuses a folder
// that somebody else has put there.
func (a *account) own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make folder for PostgreSQL: %w", err)
	}
	info, err := os.Lstat(dir) // Lstat: a planted symlink is not followed
	if err != nil {
		return fmt.Errorf("check folder for PostgreSQL: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	mine := ok && (int(st.Uid) == os.Geteuid() || a != nil && st.Uid == a.uid)
	if !info.IsDir() || !mine {
		return fmt.Errorf("%s belongs to somebody else: remove it, or choose another data folder", dir)
	}
	if a != nil {
		if err := os.Lchown(dir, int(a.uid), int(a.gid)); err != nil {
			return fmt.Errorf("give folder to user %s: %w", a.name, err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("make folder private: %w", err)
	}
	return nil
}

// reach checks that the account can pass through every parent of dir. Without
// the check, starting a program there fails with a message about the program.
func (a *account) reach(dir string) error {
	if a == nil {
		return nil
	}
	for p := filepath.Dir(dir); ; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		if err != nil {
			return fmt.Errorf("check parents of %s: %w", dir, err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !a.searches(st) {
			return fmt.Errorf("PostgreSQL runs as user %s, who may not pass through %s (mode %04o): run `chmod o+x %s`, or choose another data folder",
				a.name, p, info.Mode().Perm(), p)
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}

// searches applies the owner, group and other execute bits, of which only the
// first class that fits counts.
func (a *account) searches(st *syscall.Stat_t) bool {
	if st.Uid == a.uid {
		return st.Mode&0o100 != 0
	}
	if st.Gid == a.gid {
		return st.Mode&0o010 != 0
	}
	for _, g := range a.groups {
		if st.Gid == g {
			return st.Mode&0o010 != 0
		}
	}
	return st.Mode&0o001 != 0
}

// attributes keep a terminal's Ctrl-C away from the server (own process group),
// drop to the account, and let the server die with this process where the
// system can do that.
func (a *account) attributes(diesWithParent bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
	}
	if diesWithParent {
		interruptWithParent(attr)
	}
	return attr
}

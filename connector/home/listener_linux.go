package home

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listenerFolder finds the workspace folder of the process that listens on a
// loopback address: the folder above the temp folder in which SiYuan keeps its
// databases open. It returns "" where that cannot be known, such as for another
// user's process.
func listenerFolder(addr netip.AddrPort) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeningInodes(table, addr, inodes)
	}
	if len(inodes) == 0 {
		return ""
	}
	fds, err := filepath.Glob("/proc/[0-9]*/fd/[0-9]*")
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err == nil && strings.HasPrefix(target, "socket:[") && inodes[strings.TrimSuffix(target[len("socket:["):], "]")] {
			if dir := openWorkspace(filepath.Dir(fd)); dir != "" {
				return dir
			}
		}
	}
	return ""
}

// openWorkspace looks through a process' open files for <workspace>/temp/siyuan.db.
func openWorkspace(fdDir string) string {
	fds, err := os.ReadDir(fdDir)
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(fdDir, fd.Name()))
		if err == nil && filepath.Base(target) == "siyuan.db" && filepath.Base(filepath.Dir(target)) == "temp" {
			return filepath.Dir(filepath.Dir(target))
		}
	}
	return ""
}

// listeningInodes adds the socket inodes of one kernel table that listen on the
// address or on all addresses of the port.
func listeningInodes(table string, addr netip.AddrPort, into map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	const stateListen = "0A"
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		col := strings.Fields(lines.Text())
		if len(col) < 10 || col[3] != stateListen {
			continue
		}
		ip, port, err := parseProcAddr(col[1])
		if err == nil && port == addr.Port() && (ip == addr.Addr() || ip.IsUnspecified()) {
			into[col[9]] = true
		}
	}
}

// parseProcAddr reads HEXADDRESS:HEXPORT, the address in words of host order
// (little-endian on every platform SiYuan runs on).
func parseProcAddr(s string) (netip.Addr, uint16, error) {
	host, port, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	if !ok || err != nil || len(raw)%4 != 0 {
		return netip.Addr{}, 0, fmt.Errorf("address %q", s)
	}
	for i := 0; i < len(raw); i += 4 {
		raw[i], raw[i+1], raw[i+2], raw[i+3] = raw[i+3], raw[i+2], raw[i+1], raw[i]
	}
	ip, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.Addr{}, 0, fmt.Errorf("address %q", s)
	}
	n, err := strconv.ParseUint(port, 16, 16)
	return ip.Unmap(), uint16(n), err
}

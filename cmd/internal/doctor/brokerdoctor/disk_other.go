//go:build !unix || solaris || aix || openbsd || netbsd

package brokerdoctor

import "errors"

func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }

package userdata

import (
	"strconv"
	"strings"
)

// older reports whether a release such as "1.50.0" or "v1.50.0" comes before major.minor. A release that cannot be
// read counts as the newest.
func older(release string, major, minor int) bool {
	parts := strings.Split(strings.TrimPrefix(release, "v"), ".")
	if len(parts) < 2 {
		return false
	}
	first, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	second, err := strconv.Atoi(parts[1])
	return err == nil && (first < major || first == major && second < minor)
}

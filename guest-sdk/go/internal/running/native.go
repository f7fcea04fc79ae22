//go:build !wasip1

package running

import "context"

// Begin starts a callback outside of a component, where there is no host.
func Begin() (ctx context.Context, end func()) { return context.Background(), func() {} }

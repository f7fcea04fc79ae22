//go:build !wasip1

package running

import "context"

// Here is the context of a callback outside of a component, where there is no host.
func Here() context.Context { return context.Background() }

//go:build wasip1

package guesthouse

// What this package registers is exported by the component.
import _ "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/exports/lifecycle"

//go:build wasip1

package prompt

// What this package registers is exported by the component.
import _ "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/exports/prompts"

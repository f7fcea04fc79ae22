// Package convert turns the SDK's values into those of the contract.
package convert

import (
	"encoding/json"
	"errors"

	wit "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_types"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/wit/types"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// Text is absent when it is empty.
func Text(text string) types.Option[string] {
	if text == "" {
		return types.None[string]()
	}
	return types.Some(text)
}

// JSON is absent when it is empty.
func JSON(text json.RawMessage) types.Option[string] { return Text(string(text)) }

// Pointer is absent when it is nil.
func Pointer[T any](value *T) types.Option[T] {
	if value == nil {
		return types.None[T]()
	}
	return types.Some(*value)
}

// Error sorts a failure. One that its handler gave no meaning is the guest's own fault: its text goes to the log.
func Error(err error) wit.Error {
	meant := new(mcp.Error)
	if !errors.As(err, &meant) {
		return wit.MakeErrorInternal(err.Error())
	}
	switch meant.Kind {
	case mcp.KindNotFound:
		return wit.MakeErrorNotFound(meant.Message)
	case mcp.KindInvalidParams:
		return wit.MakeErrorInvalidParams(meant.Message)
	case mcp.KindMissingCapability:
		return wit.MakeErrorMissingClientCapability(meant.Message)
	case mcp.KindProtocol:
		return wit.MakeErrorRpc(wit.RpcError{Code: meant.Code, Message: meant.Message, Data: JSON(meant.Data)})
	default:
		return wit.MakeErrorInternal(meant.Message)
	}
}

// Icons converts a list of icons.
func Icons(icons []mcp.Icon) []wit.Icon {
	out := make([]wit.Icon, 0, len(icons))
	for _, icon := range icons {
		theme := types.None[wit.IconTheme]()
		switch icon.Theme {
		case "light":
			theme = types.Some(wit.IconThemeLight)
		case "dark":
			theme = types.Some(wit.IconThemeDark)
		}
		out = append(out, wit.Icon{Src: icon.Source, MimeType: Text(icon.MIMEType), Sizes: icon.Sizes, Theme: theme})
	}
	return out
}

// Annotations converts hints about content.
func Annotations(a *mcp.Annotations) types.Option[wit.Annotations] {
	if a == nil {
		return types.None[wit.Annotations]()
	}
	audience := make([]wit.Role, 0, len(a.Audience))
	for _, role := range a.Audience {
		audience = append(audience, Role(role))
	}
	return types.Some(wit.Annotations{Audience: audience, Priority: Pointer(a.Priority), LastModified: Text(a.LastModified)})
}

// Role converts a role.
func Role(role mcp.Role) wit.Role {
	if role == mcp.Assistant {
		return wit.RoleAssistant
	}
	return wit.RoleUser
}

// Contents converts blocks of content.
func Contents(blocks []mcp.Content) []wit.Content {
	out := make([]wit.Content, 0, len(blocks))
	for _, block := range blocks {
		out = append(out, Content(block))
	}
	return out
}

// Content converts one block of content. A nil block is an empty text.
func Content(block mcp.Content) wit.Content {
	switch c := block.(type) {
	case mcp.Text:
		return wit.MakeContentText(wit.TextContent{Text: c.Text, Annotations: Annotations(c.Annotations), Meta: JSON(c.Meta)})
	case mcp.Image:
		return wit.MakeContentImage(wit.MediaContent{
			Data: c.Data, MimeType: c.MIMEType, Annotations: Annotations(c.Annotations), Meta: JSON(c.Meta),
		})
	case mcp.Audio:
		return wit.MakeContentAudio(wit.MediaContent{
			Data: c.Data, MimeType: c.MIMEType, Annotations: Annotations(c.Annotations), Meta: JSON(c.Meta),
		})
	case mcp.ResourceLink:
		return wit.MakeContentResourceLink(Resource(c.Resource))
	case mcp.EmbeddedResource:
		return wit.MakeContentEmbeddedResource(wit.EmbeddedResource{
			Contents: ResourceContents(c.Contents, c.Contents.URI), Annotations: Annotations(c.Annotations), Meta: JSON(c.Meta),
		})
	default:
		return wit.MakeContentText(wit.TextContent{})
	}
}

// Resource converts an entry of a resource list.
func Resource(r mcp.Resource) wit.ResourceEntry {
	return wit.ResourceEntry{
		Uri: r.URI, Name: r.Name, Title: Text(r.Title), Description: Text(r.Description), MimeType: Text(r.MIMEType),
		Size: Pointer(r.Size), Icons: Icons(r.Icons), Annotations: Annotations(r.Annotations), Meta: JSON(r.Meta),
	}
}

// ResourceContents converts what was read; uri is used where the contents name none.
func ResourceContents(c mcp.ResourceContents, uri string) wit.ResourceContents {
	if c.URI != "" {
		uri = c.URI
	}
	body := wit.MakeBodyText(c.Text)
	if c.Blob != nil {
		body = wit.MakeBodyBlob(c.Blob)
	}
	return wit.ResourceContents{Uri: uri, MimeType: Text(c.MIMEType), Body: body, Meta: JSON(c.Meta)}
}

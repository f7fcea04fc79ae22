// Package mcp has the words that tools, resources and prompts share: content, icons, annotations and errors.
package mcp

import "encoding/json"

// Content is one block of what a tool or a prompt says: [Text], [Image], [Audio], [ResourceLink] or [EmbeddedResource].
type Content interface{ isContent() }

// Role says who speaks a prompt message, or whom content is meant for.
type Role uint8

// The two roles.
const (
	User Role = iota
	Assistant
)

// Annotations are hints for the client about one piece of content.
type Annotations struct {
	Audience []Role
	// Priority goes from 0 (least) to 1 (most important); nil says nothing.
	Priority *float64
	// LastModified is an ISO 8601 time; empty says nothing.
	LastModified string
}

// Text is plain text.
type Text struct {
	Text        string
	Annotations *Annotations
	Meta        json.RawMessage
}

// Image is a picture; Data is raw, the host encodes it.
type Image struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        json.RawMessage
}

// Audio is a sound; Data is raw, the host encodes it.
type Audio struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        json.RawMessage
}

// ResourceLink points at a resource that the client may read.
type ResourceLink struct{ Resource }

// EmbeddedResource carries a resource's contents along.
type EmbeddedResource struct {
	Contents    ResourceContents
	Annotations *Annotations
	Meta        json.RawMessage
}

func (Text) isContent()             {}
func (Image) isContent()            {}
func (Audio) isContent()            {}
func (ResourceLink) isContent()     {}
func (EmbeddedResource) isContent() {}

// Resource is an entry of a resource list.
type Resource struct {
	URI, Name, Title, Description, MIMEType string
	// Size is in bytes, before any encoding; nil says nothing.
	Size        *uint64
	Icons       []Icon
	Annotations *Annotations
	Meta        json.RawMessage
}

// ResourceContents is what reading a resource gives: Blob where it is not nil, else Text.
type ResourceContents struct {
	// URI may be left empty: then it is the URI that was read.
	URI, MIMEType string
	Text          string
	Blob          []byte
	Meta          json.RawMessage
}

// Icon is a picture that a client may show beside a name.
type Icon struct {
	Source, MIMEType string
	// Sizes are such as "48x48" or "any".
	Sizes []string
	// Theme is "light", "dark" or empty.
	Theme string
}

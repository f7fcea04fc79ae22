package mcp

import (
	"encoding/json"
	"fmt"
)

// ErrorKind tells the host what sort of answer an [Error] becomes.
type ErrorKind uint8

// The kinds of error. The host chooses codes and wording for each protocol revision.
const (
	KindNotFound ErrorKind = iota
	KindInvalidParams
	KindMissingCapability
	KindInternal
	KindProtocol
)

// Error is a failure with a meaning in the protocol. A handler's other errors need none of this: a tool's become results
// that the model can read, a resource's and a prompt's go to the log.
type Error struct {
	Kind    ErrorKind
	Message string
	// Code and Data belong to KindProtocol alone.
	Code int32
	Data json.RawMessage
}

// Error is the text of the failure.
func (e *Error) Error() string { return e.Message }

// NotFound says that there is no such thing under this name or URI.
func NotFound(name string) error { return &Error{Kind: KindNotFound, Message: name} }

// InvalidParams says what is wrong with the arguments; the client gets to read it.
func InvalidParams(format string, args ...any) error {
	return &Error{Kind: KindInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// Internal says that the fault is ours; the text goes to the log, never to the client.
func Internal(format string, args ...any) error {
	return &Error{Kind: KindInternal, Message: fmt.Sprintf(format, args...)}
}

// MissingCapability says which client capabilities the handler needs, as a ClientCapabilities object.
func MissingCapability(capabilities json.RawMessage) error {
	return &Error{Kind: KindMissingCapability, Message: string(capabilities)}
}

// Protocol answers with a JSON-RPC code of the handler's own; data may be nil.
func Protocol(code int32, message string, data json.RawMessage) error {
	return &Error{Kind: KindProtocol, Code: code, Message: message, Data: data}
}

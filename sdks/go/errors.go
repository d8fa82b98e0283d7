// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fila-dev/fila-go/filav1"
)

// Kind says which refusal an error is: a name of ErrorKind of the contract without its prefix, or one of the SDK's own
// kinds below. A kind that this version does not know is "KIND_" and its number.
type Kind string

// Kinds of the SDK itself. KindUnavailable: no server can be reached. KindDeadlineExceeded: there was no answer in time,
// and what was asked for may have been done.
const (
	KindUnavailable      Kind = "UNAVAILABLE"
	KindDeadlineExceeded Kind = "DEADLINE_EXCEEDED"
	KindCancelled        Kind = "CANCELLED"
	KindClosed           Kind = "CLOSED"
)

// Kinds of the broker that the SDK itself acts on.
const (
	kindInternal     Kind = "INTERNAL"
	kindInvalid      Kind = "INVALID_ARGUMENT"
	kindKeyEnded     Kind = "KEY_ENDED"
	kindMessageGone  Kind = "MESSAGE_GONE"
	kindNotOwner     Kind = "NOT_OWNER"
	kindShuttingDown Kind = "SHUTTING_DOWN"
	kindStale        Kind = "STALE_SEQUENCE"
	kindStoreBusy    Kind = "STORE_BUSY"
	kindTooLarge     Kind = "TOO_LARGE"
)

// tooLargeText is how gRPC says that a response is larger than the client takes. It has no code of its own.
const tooLargeText = "message larger than max"

// Errors to compare with [errors.Is]. Several kinds of the broker may belong to one of them.
var (
	// ErrQueueNotFound: create the queue.
	ErrQueueNotFound = errors.New("queue not found")
	// ErrQueueAlreadyExists: use it.
	ErrQueueAlreadyExists = errors.New("queue already exists")
	// ErrMessageNotFound: the lease has ended, or nobody holds the message.
	ErrMessageNotFound = errors.New("message not found")
	// ErrConfigNotFound: the entry is not set.
	ErrConfigNotFound = errors.New("configuration entry not found")
	// ErrInvalidArgument: mend the request.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrFailedPrecondition: something else must happen first.
	ErrFailedPrecondition = errors.New("failed precondition")
	// ErrLimitExceeded: something is too large, or there is too much of it.
	ErrLimitExceeded = errors.New("limit exceeded")
	// ErrOverloaded: it stayed so until the deadline. Slow down.
	ErrOverloaded = errors.New("overloaded")
	// ErrQueueFull: consumers are behind. It is an ErrOverloaded too.
	ErrQueueFull = errors.New("queue full")
	// ErrUnavailable: no server can be reached.
	ErrUnavailable = errors.New("unavailable")
	// ErrTLS: certificates do not match. It is an ErrUnavailable too.
	ErrTLS = errors.New("no secure connection")
	// ErrUnauthenticated: there is no valid key.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrPermissionDenied: the key lacks a right.
	ErrPermissionDenied = errors.New("permission denied")
	// ErrUnsupported: this server cannot do that.
	ErrUnsupported = errors.New("unsupported")
	// ErrInternal: a defect of the server.
	ErrInternal = errors.New("internal error")
	// ErrTimeout: the deadline has passed. It is a [context.DeadlineExceeded] too.
	ErrTimeout = errors.New("no answer in time")
	// ErrCancelled: the context was cancelled. It is a [context.Canceled] too.
	ErrCancelled = errors.New("cancelled")
	// ErrClosed: the client is closed, or the consumer was stopped.
	ErrClosed = errors.New("client closed")
)

// Error is what every failed call returns.
type Error struct {
	Kind    Kind
	Message string
	// Retryable says whether the same request may succeed later, though nobody changes anything.
	Retryable bool
	// RetryAfter is how long to wait at least; 0 means that the caller chooses.
	RetryAfter time.Duration

	code  codes.Code
	owner string
	cause error
}

// Error returns the kind and the text of the broker.
func (e *Error) Error() string { return "fila: " + string(e.Kind) + ": " + e.Message }

// Unwrap returns what caused the error, such as context.Canceled.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether the error belongs to one of the Err variables.
func (e *Error) Is(target error) bool {
	found, known := byKind[e.Kind]
	if !known {
		found = byCode[e.code]
	}
	for _, each := range found {
		if each == target {
			return true
		}
	}
	return false
}

// byKind has the Err variables of each kind, the most exact first.
var byKind = map[Kind][]error{
	kindInternal:           {ErrInternal},
	kindInvalid:            {ErrInvalidArgument},
	"PAYLOAD_TOO_LARGE":    {ErrLimitExceeded},
	kindTooLarge:           {ErrLimitExceeded},
	"LIMIT_REACHED":        {ErrLimitExceeded},
	"QUEUE_NOT_FOUND":      {ErrQueueNotFound},
	"QUEUE_ALREADY_EXISTS": {ErrQueueAlreadyExists},
	"MESSAGE_NOT_FOUND":    {ErrMessageNotFound},
	"LEASE_ENDED":          {ErrMessageNotFound},
	kindMessageGone:        {ErrMessageNotFound},
	"CONFIG_NOT_FOUND":     {ErrConfigNotFound},
	"UNAUTHENTICATED":      {ErrUnauthenticated},
	kindKeyEnded:           {ErrUnauthenticated},
	"PERMISSION_DENIED":    {ErrPermissionDenied},
	"FAILED_PRECONDITION":  {ErrFailedPrecondition},
	"CLAIM_LOST":           {ErrFailedPrecondition},
	"FENCED":               {ErrFailedPrecondition},
	"TOO_FAR_AHEAD":        {ErrFailedPrecondition},
	"NOT_STAGED":           {ErrFailedPrecondition},
	kindStale:              {ErrFailedPrecondition},
	"SEQUENCE_REUSED":      {ErrFailedPrecondition},
	"PRODUCER_FENCED":      {ErrFailedPrecondition},
	"OVERLOADED":           {ErrOverloaded},
	"QUOTA_EXCEEDED":       {ErrOverloaded},
	"QUEUE_FULL":           {ErrQueueFull, ErrOverloaded},
	kindShuttingDown:       {ErrUnavailable},
	kindStoreBusy:          {ErrUnavailable},
	"STORE_FULL":           {ErrOverloaded},
	"STORE_FAILED":         {ErrInternal},
	kindNotOwner:           {ErrUnavailable},
	"PROVIDER_AWAY":        {ErrUnavailable},
	"UNSUPPORTED":          {ErrUnsupported},
	KindUnavailable:        {ErrUnavailable},
	KindDeadlineExceeded:   {ErrTimeout},
	KindCancelled:          {ErrCancelled},
	KindClosed:             {ErrClosed},
}

// byCode is for kinds that this version does not know, and for statuses of a proxy, which have none.
var byCode = map[codes.Code][]error{
	codes.InvalidArgument:    {ErrInvalidArgument},
	codes.FailedPrecondition: {ErrFailedPrecondition},
	codes.ResourceExhausted:  {ErrOverloaded},
	codes.Unavailable:        {ErrUnavailable},
	codes.DeadlineExceeded:   {ErrTimeout},
	codes.Canceled:           {ErrUnavailable},
	codes.PermissionDenied:   {ErrPermissionDenied},
	codes.Unauthenticated:    {ErrUnauthenticated},
	codes.Unimplemented:      {ErrUnsupported},
	codes.Internal:           {ErrInternal},
	codes.Unknown:            {ErrInternal},
}

func kindOf(kind filav1.ErrorKind) Kind {
	if _, known := filav1.ErrorKind_name[int32(kind)]; !known {
		return Kind(fmt.Sprintf("KIND_%d", int32(kind)))
	}
	return Kind(strings.TrimPrefix(kind.String(), "ERROR_KIND_"))
}

// fromContract makes the error of a refusal of the broker; text is for one that has none of its own.
func fromContract(refusal *filav1.Error, text string) *Error {
	if refusal.GetMessage() != "" {
		text = refusal.GetMessage()
	}
	return &Error{
		Kind:       kindOf(refusal.GetKind()),
		Message:    text,
		Retryable:  refusal.GetRetryable(),
		RetryAfter: time.Duration(refusal.GetRetryAfterMs()) * time.Millisecond,
		code:       codeOf(refusal.GetCode()),
		owner:      namedAddress(refusal.GetOwner()),
	}
}

func codeOf(number int32) codes.Code {
	if number < 0 || number > int32(codes.Unauthenticated) {
		return codes.Unknown
	}
	return codes.Code(number)
}

// fromStatus translates the end of a call. lost says that the connection was lost: the broker has refused nothing, or
// goes away.
func fromStatus(err error) (translated *Error, lost bool) {
	ended := status.Convert(err)
	for _, detail := range ended.Details() {
		if refusal, ok := detail.(*filav1.Error); ok {
			translated = fromContract(refusal, ended.Message())
			translated.code = ended.Code()
			return translated, ended.Code() == codes.Unavailable || refusal.GetKind() == filav1.ErrorKind_ERROR_KIND_KEY_ENDED
		}
	}
	switch code := ended.Code(); code {
	case codes.Unavailable, codes.Canceled, codes.Internal, codes.Unknown:
		return unavailable(ended.Message(), err), true
	case codes.DeadlineExceeded: // the broker's clock may be ahead of that of the context
		return &Error{Kind: KindDeadlineExceeded, Message: ended.Message(), code: code, cause: errors.Join(context.DeadlineExceeded, err)}, false
	case codes.ResourceExhausted:
		if strings.Contains(ended.Message(), tooLargeText) {
			return &Error{Kind: kindTooLarge, Message: ended.Message() + ": see WithMaxResponseBytes", code: code, cause: err}, false
		}
		fallthrough
	default:
		kind := Kind(strings.ToUpper(snake(code.String())))
		return &Error{Kind: kind, Message: ended.Message(), Retryable: code == codes.ResourceExhausted, code: code, cause: err}, false
	}
}

func unavailable(text string, cause error) *Error {
	return &Error{Kind: KindUnavailable, Message: text, Retryable: true, code: codes.Unavailable, cause: cause}
}

// fromContext is the error of a call whose context has ended; trouble is the last failure of the connection, if any.
func fromContext(ctx context.Context, trouble *Error) *Error {
	made := &Error{Kind: KindDeadlineExceeded, Message: "no answer in time", code: codes.DeadlineExceeded, cause: ctx.Err()}
	if errors.Is(ctx.Err(), context.Canceled) {
		made = &Error{Kind: KindCancelled, Message: "the context was cancelled", code: codes.Canceled, cause: ctx.Err()}
	} else if trouble != nil {
		made.Message += " (" + trouble.Message + ")"
	}
	if own := context.Cause(ctx); !errors.Is(ctx.Err(), own) { // the program's own reason
		made.Message += ": " + own.Error()
		made.cause = errors.Join(made.cause, own)
	}
	return made
}

func closedError() *Error { return &Error{Kind: KindClosed, Message: "the client is closed"} }

func invalid(text string) *Error {
	return &Error{Kind: kindInvalid, Message: text, code: codes.InvalidArgument}
}

// snake turns InvalidArgument into Invalid_Argument.
func snake(name string) string {
	var made strings.Builder
	for at, letter := range name {
		if at > 0 && letter >= 'A' && letter <= 'Z' {
			made.WriteByte('_')
		}
		made.WriteRune(letter)
	}
	return made.String()
}

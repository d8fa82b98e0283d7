// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

// Package fila is the Go client of Fila, a durable message broker with fair scheduling and throttling for each key.
//
// A [Client] is safe for concurrent use, and one is enough for a program. Calls of [Client.Enqueue] from many
// goroutines travel together in batches; a batch whose answer was lost is sent again under its number, so a message is
// enqueued once, whatever happens to the connection.
//
// Messages come from [Client.Consume] (a channel), [Client.Messages] (an iterator) or [Client.Subscribe] (a consumer
// with Next and Stop). Settle each with [ConsumeMessage.Ack], [ConsumeMessage.Nack], [ConsumeMessage.Release] or
// [ConsumeMessage.Reject]. Leases are extended for as long as the program holds a message.
//
// Every error is an [*Error], or wraps one. Use [errors.Is] with [ErrQueueNotFound] and the like.
//
// A call whose context has no deadline ends after the timeout of the client ([WithTimeout]).
package fila

// Version is the version of this SDK.
const Version = "0.1.0"

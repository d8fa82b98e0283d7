/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import io.fila.v1.Error;
import io.fila.v1.ErrorKind;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.nio.channels.ClosedChannelException;
import javax.net.ssl.SSLException;

/** The one place that turns refusals of the contract and of the transport into exceptions. */
final class Errors {
  static final Metadata.Key<String> OWNER =
      Metadata.Key.of("fila-owner", Metadata.ASCII_STRING_MARSHALLER);

  private static final String PREFIX = "ERROR_KIND_";

  private Errors() {}

  /**
   * How a call ended: the refusal of the broker, or null when the transport or a proxy ended it. Details that cannot be
   * read, or that belong to another status, are none.
   */
  static Error detailsOf(Status status, Metadata trailers) {
    try {
      com.google.rpc.Status found = StatusProto.fromStatusAndTrailers(status, trailers);
      if (found != null) {
        for (Any detail : found.getDetailsList()) {
          if (detail.is(Error.class)) {
            return detail.unpack(Error.class);
          }
        }
      }
      return null;
    } catch (InvalidProtocolBufferException | IllegalArgumentException unreadable) {
      return null;
    }
  }

  static FilaException of(Error error) {
    return of(error, error.getMessage(), error.getOwner());
  }

  static FilaException of(Status status, Metadata trailers) {
    Error details = detailsOf(status, trailers);
    String text = status.getDescription() == null ? status.getCode().name() : status.getDescription();
    if (details != null) {
      String owner = trailers == null ? null : trailers.get(OWNER);
      return of(details, text, owner == null ? details.getOwner() : owner);
    }
    if (isTlsRefusal(status.getCause())) {
      return new TlsException(
          Failure.local("UNAVAILABLE", tlsText(status.getCause()), status.getCause()));
    }
    Status.Code code = status.getCode();
    boolean lost = isTransport(code);
    Failure failure =
        new Failure(lost ? "UNAVAILABLE" : code.name(), text, lost, 0, "", status.getCause());
    return lost ? new UnavailableException(failure) : byCode(code, failure);
  }

  /**
   * Whether a stream was lost, rather than refused: by the transport, or by a broker that cannot go on with it. The
   * caller decides how often to try KEY_ENDED again.
   */
  static boolean wasLost(FilaException error) {
    return !(error instanceof TlsException) && (error instanceof UnavailableException || isKeyEnded(error));
  }

  /** Whether another member may do better: this one is lost or stops. */
  static boolean goesElsewhere(FilaException error) {
    return error.kind().equals("UNAVAILABLE") || error.kind().equals("SHUTTING_DOWN");
  }

  /** Whether no other request could succeed on such a connection either. */
  static boolean concernsAll(FilaException error) {
    return error instanceof TlsException || isKeyEnded(error) || error.kind().equals("UNAUTHENTICATED");
  }

  static boolean isKeyEnded(FilaException error) {
    return error.kind().equals("KEY_ENDED");
  }

  static boolean isNotOwner(FilaException error) {
    return error.kind().equals("NOT_OWNER") && !error.owner().isEmpty();
  }

  static FilaException invalid(String text) {
    return new InvalidArgumentException(Failure.local("INVALID_ARGUMENT", text, null));
  }

  static FilaException closed() {
    return new ClientClosedException(Failure.local("CLOSED", "the client is closed", null));
  }

  static FilaException streamClosed() {
    return new UnavailableException(
        new Failure("UNAVAILABLE", "the broker closed the stream", true, 0, "", null));
  }

  /** It was never sent. */
  static FilaException bufferFull() {
    return new OverloadedException(
        new Failure("OVERLOADED", "there was no room in the client's buffer before the deadline", true, 0, "", null));
  }

  static FilaException cancelled() {
    return new CancelledException(Failure.local("CANCELLED", "the call was cancelled", null));
  }

  /** For a batch that the broker may not know any more: sent again, it could be carried out twice. */
  static FilaException forgotten() {
    String text = "the answer was lost, and the broker may not know the request any more";
    return new FailedPreconditionException(Failure.local("STALE_SEQUENCE", text, null));
  }

  /** The same error with the stack of the thread that asked, and the one of the client's thread as its cause. */
  static FilaException raisedHere(FilaException error) {
    Failure failure =
        new Failure(
            error.kind(), error.getMessage(), error.retryable(), error.retryAfter().toMillis(), error.owner(), error);
    try {
      return error.getClass().getDeclaredConstructor(Failure.class).newInstance(failure);
    } catch (ReflectiveOperationException notAsTheOthers) {
      return error;
    }
  }

  static FilaException unexpected(String text, Throwable cause) {
    return new InternalException(
        Failure.local("INTERNAL", "unexpected answer from the broker: " + text, cause));
  }

  /** For a request whose deadline has passed. It may have been carried out only if it was sent. */
  static FilaException late(boolean sent, FilaException trouble) {
    String text = "no answer before the deadline" + (trouble == null ? "" : " (" + trouble.getMessage() + ")");
    if (!sent && trouble instanceof UnavailableException) {
      return new UnavailableException(new Failure("UNAVAILABLE", text, true, 0, "", trouble));
    }
    return new FilaTimeoutException(Failure.local("DEADLINE_EXCEEDED", text, trouble));
  }

  private static FilaException of(Error error, String text, String owner) {
    boolean known = error.getKind() != ErrorKind.UNRECOGNIZED && error.getKindValue() != 0;
    Status.Code code = Status.fromCodeValue(error.getCode()).getCode();
    String kind = known ? error.getKind().name().substring(PREFIX.length()) : code.name();
    String shown = text.isEmpty() ? code.name() : text;
    Failure failure =
        new Failure(kind, shown, error.getRetryable(), Integer.toUnsignedLong(error.getRetryAfterMs()), owner, null);
    return known ? byKind(error.getKind(), failure) : byCode(code, failure);
  }

  private static FilaException byKind(ErrorKind kind, Failure failure) {
    return switch (kind) {
      case ERROR_KIND_QUEUE_NOT_FOUND -> new QueueNotFoundException(failure);
      case ERROR_KIND_QUEUE_ALREADY_EXISTS -> new QueueAlreadyExistsException(failure);
      case ERROR_KIND_MESSAGE_NOT_FOUND, ERROR_KIND_LEASE_ENDED, ERROR_KIND_MESSAGE_GONE ->
          new MessageNotFoundException(failure);
      case ERROR_KIND_CONFIG_NOT_FOUND -> new ConfigNotFoundException(failure);
      case ERROR_KIND_INVALID_ARGUMENT -> new InvalidArgumentException(failure);
      case ERROR_KIND_PAYLOAD_TOO_LARGE, ERROR_KIND_TOO_LARGE, ERROR_KIND_LIMIT_REACHED ->
          new LimitExceededException(failure);
      case ERROR_KIND_UNAUTHENTICATED, ERROR_KIND_KEY_ENDED, ERROR_KIND_PERMISSION_DENIED ->
          new PermissionDeniedException(failure);
      case ERROR_KIND_FENCED, ERROR_KIND_PRODUCER_FENCED -> new FencedException(failure);
      case ERROR_KIND_FAILED_PRECONDITION,
              ERROR_KIND_CLAIM_LOST,
              ERROR_KIND_TOO_FAR_AHEAD,
              ERROR_KIND_NOT_STAGED,
              ERROR_KIND_STALE_SEQUENCE,
              ERROR_KIND_SEQUENCE_REUSED,
              ERROR_KIND_UNSUPPORTED ->
          new FailedPreconditionException(failure);
      case ERROR_KIND_QUEUE_FULL -> new QueueFullException(failure);
      case ERROR_KIND_OVERLOADED, ERROR_KIND_QUOTA_EXCEEDED, ERROR_KIND_STORE_FULL ->
          new OverloadedException(failure);
      case ERROR_KIND_SHUTTING_DOWN,
              ERROR_KIND_STORE_BUSY,
              ERROR_KIND_NOT_OWNER,
              ERROR_KIND_PROVIDER_AWAY ->
          new UnavailableException(failure);
      case ERROR_KIND_INTERNAL, ERROR_KIND_STORE_FAILED, ERROR_KIND_UNSPECIFIED, UNRECOGNIZED ->
          new InternalException(failure);
    };
  }

  /** Of a status without a kind, and of kinds that this version does not know. */
  private static FilaException byCode(Status.Code code, Failure failure) {
    return switch (code) {
      case INVALID_ARGUMENT -> new InvalidArgumentException(failure);
      case FAILED_PRECONDITION, UNIMPLEMENTED -> new FailedPreconditionException(failure);
      case RESOURCE_EXHAUSTED ->
          failure.retryable() ? new OverloadedException(failure) : new LimitExceededException(failure);
      case UNAVAILABLE, CANCELLED -> new UnavailableException(failure);
      case DEADLINE_EXCEEDED -> new FilaTimeoutException(failure);
      case PERMISSION_DENIED, UNAUTHENTICATED -> new PermissionDeniedException(failure);
      default -> new InternalException(failure);
    };
  }

  private static boolean isTransport(Status.Code code) {
    return switch (code) {
      case UNAVAILABLE, CANCELLED, INTERNAL, UNKNOWN -> true;
      default -> false;
    };
  }

  /** A check failed, on either side. A connection that is lost during the handshake is lost, not insecure. */
  private static boolean isTlsRefusal(Throwable thrown) {
    boolean tls = false;
    for (Throwable each = thrown; each != null; each = each.getCause()) {
      if (each instanceof ClosedChannelException || each.getClass().getSimpleName().startsWith("Stackless")) {
        return false;
      }
      tls = tls || each instanceof SSLException;
    }
    return tls;
  }

  /** The innermost text says which check failed; the outer ones only that the handshake did. */
  private static String tlsText(Throwable thrown) {
    Throwable last = thrown;
    while (last.getCause() != null) {
      last = last.getCause();
    }
    return "no secure connection: " + last.getMessage();
  }
}

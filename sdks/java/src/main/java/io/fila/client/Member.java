/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * One server and the channel to it. Belongs to the loop.
 *
 * <p>A channel of gRPC that cannot connect waits by its own clock, up to two minutes. So a channel that has failed is
 * replaced, not waited for: the pace is that of {@link Backoff}. A new channel also reads the certificates anew.
 */
final class Member {
  /** A server that hangs takes connections and says nothing on them. */
  private static final long CONNECT_MS = 10_000;

  final String address;
  private final Loop loop;
  private final Channels channels;
  private final Backoff backoff = new Backoff();
  private final List<ManagedChannel> replaced = new ArrayList<>();
  private ManagedChannel channel;
  private ManagedChannel watched;
  private long renewAt = System.nanoTime();

  Member(String address, Loop loop, Channels channels) {
    this.address = address;
    this.loop = loop;
    this.channels = channels;
  }

  /** The channel to use now. While a server is away, a call on it fails at once with the last reason. */
  ManagedChannel channel() throws FilaException {
    long now = System.nanoTime();
    if (channel == null) {
      channel = channels.open(address);
    } else {
      ConnectivityState state = channel.getState(false);
      if (state == ConnectivityState.READY) {
        backoff.reset();
        renewAt = now;
      } else if (state != ConnectivityState.CONNECTING && now - renewAt >= 0) {
        replace();
        renewAt = now + TimeUnit.MILLISECONDS.toNanos(backoff.nextWaitMs(0));
      }
    }
    if (watched != channel) {
      ManagedChannel begun = channel;
      watched = begun;
      loop.schedule(() -> giveUpConnecting(begun), CONNECT_MS);
    }
    return channel;
  }

  private void giveUpConnecting(ManagedChannel begun) {
    if (begun == channel && begun.getState(false) == ConnectivityState.CONNECTING) {
      begun.shutdownNow();
    }
  }

  /** Why a call ended, in words that are not about channels. */
  Status explained(Status status) {
    boolean shut = status.getCode() == Status.Code.UNAVAILABLE && channel != null && channel.isShutdown();
    return shut ? status.withDescription("no connection to " + address + " within " + CONNECT_MS + " ms") : status;
  }

  /** Ends all calls. Returns the channels, for whoever waits for their end. */
  List<ManagedChannel> close() {
    List<ManagedChannel> all = new ArrayList<>(replaced);
    if (channel != null) {
      all.add(channel);
    }
    all.forEach(ManagedChannel::shutdownNow);
    return all;
  }

  private void replace() throws FilaException {
    ManagedChannel made = channels.open(address);
    channel.shutdown();
    replaced.removeIf(ManagedChannel::isTerminated);
    replaced.add(channel);
    channel = made;
  }
}

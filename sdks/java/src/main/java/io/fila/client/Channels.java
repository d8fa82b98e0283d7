/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioSocketChannel;
import java.io.IOException;
import java.util.concurrent.TimeUnit;

/** Makes channels on the thread of the client. Belongs to the loop. */
final class Channels {
  /** Servers can be set up for responses above the 4 MiB of gRPC. */
  private static final int MAX_RESPONSE_BYTES = 64 << 20;

  /** Fixed: the window that gRPC tunes by itself sends a PING for each burst, and servers count those. */
  private static final int FLOW_WINDOW_BYTES = 4 << 20;

  private final Loop loop;
  private final TlsOptions tls;
  private ChannelCredentials last;

  Channels(Loop loop, TlsOptions tls) {
    this.loop = loop;
    this.tls = tls;
  }

  /** Reads the certificates anew. While files are being replaced, those that could be read last go on. */
  ManagedChannel open(String address) throws FilaException {
    try {
      ChannelCredentials read = tls == null ? InsecureChannelCredentials.create() : tls.credentials();
      ManagedChannel made = open(address, read);
      last = read;
      return made;
    } catch (IOException | IllegalArgumentException unreadable) {
      if (last == null) {
        throw new TlsException(Failure.local("UNAVAILABLE", "TLS: " + unreadable.getMessage(), unreadable));
      }
      return open(address, last);
    }
  }

  private ManagedChannel open(String address, ChannelCredentials credentials) {
    int colon = address.lastIndexOf(':');
    String host = address.substring(0, colon).replaceAll("^\\[|]$", "");
    int port = Integer.parseInt(address.substring(colon + 1));
    NettyChannelBuilder builder = NettyChannelBuilder.forAddress(host, port, credentials);
    if (tls != null && tls.serverName() != null) {
      builder.overrideAuthority(tls.serverName());
    }
    return builder
        .eventLoopGroup(loop.group())
        .channelType(NioSocketChannel.class)
        .directExecutor()
        .flowControlWindow(FLOW_WINDOW_BYTES)
        .maxInboundMessageSize(MAX_RESPONSE_BYTES)
        .keepAliveTime(30, TimeUnit.SECONDS)
        .keepAliveTimeout(10, TimeUnit.SECONDS)
        .keepAliveWithoutCalls(true)
        .disableRetry()
        .userAgent("fila-java/" + FilaClient.VERSION)
        .build();
  }
}

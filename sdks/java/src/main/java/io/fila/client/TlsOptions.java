/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.ChannelCredentials;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Objects;

/**
 * How to secure the connections of a client. Files are PEM. They are read again for each new connection, so
 * certificates are renewed by replacing the files.
 */
public final class TlsOptions {
  private final Path ca;
  private final Path certificate;
  private final Path privateKey;
  private final String serverName;

  private TlsOptions(Path ca, Path certificate, Path privateKey, String serverName) {
    this.ca = ca;
    this.certificate = certificate;
    this.privateKey = privateKey;
    this.serverName = serverName;
  }

  /**
   * Trusts the authorities that the Java runtime trusts.
   *
   * @return the options
   */
  public static TlsOptions system() {
    return new TlsOptions(null, null, null, null);
  }

  /**
   * Trusts the authorities of a file.
   *
   * @param ca certificates of the authorities that may have signed the broker's
   * @return the options
   */
  public static TlsOptions trusting(Path ca) {
    return system().trust(ca);
  }

  /**
   * Trusts the authorities of a file.
   *
   * @param ca certificates of the authorities that may have signed the broker's
   * @return a copy with this change
   */
  public TlsOptions trust(Path ca) {
    return new TlsOptions(Objects.requireNonNull(ca, "ca"), certificate, privateKey, serverName);
  }

  /**
   * Shows a certificate to the broker (mutual TLS).
   *
   * @param certificate the certificate, followed by those of intermediate authorities
   * @param privateKey its private key, PKCS 8
   * @return a copy with this change
   */
  public TlsOptions identity(Path certificate, Path privateKey) {
    Objects.requireNonNull(certificate, "certificate");
    Objects.requireNonNull(privateKey, "privateKey");
    return new TlsOptions(ca, certificate, privateKey, serverName);
  }

  /**
   * Says whom the broker's certificate must be for, if not the host that is connected to.
   *
   * @param serverName the expected name
   * @return a copy with this change
   */
  public TlsOptions serverName(String serverName) {
    return new TlsOptions(ca, certificate, privateKey, Objects.requireNonNull(serverName, "serverName"));
  }

  String serverName() {
    return serverName;
  }

  ChannelCredentials credentials() throws IOException {
    TlsChannelCredentials.Builder made = TlsChannelCredentials.newBuilder();
    if (ca != null) {
      made.trustManager(ca.toFile());
    }
    if (certificate != null) {
      made.keyManager(certificate.toFile(), privateKey.toFile());
    }
    return made.build();
  }
}

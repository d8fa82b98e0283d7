/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SecurityTest {
  @Test
  void aKeyIsNeededOnceThereIsOne() throws Exception {
    try (Server server = new Server("")) {
      String key = server.output("fila", "--addr", server.address(), "auth", "init");
      try (FilaClient with = FilaClient.builder().address(server.address()).apiKey(key).build();
          FilaClient without = server.client()) {
        with.admin().createQueue("q");
        assertEquals(36, with.enqueue("q", Map.of(), new byte[1]).length());
        FilaException refused =
            assertThrows(PermissionDeniedException.class, () -> without.enqueue("q", Map.of(), new byte[1]));
        assertEquals("UNAUTHENTICATED", refused.kind());
      }
    }
  }

  /** A certificate for localhost, signed by itself, in the files cert.pem and key.pem of a new folder. */
  private static Path certified() throws IOException, InterruptedException {
    Path folder = Files.createTempDirectory("fila-java-");
    Process made =
        new ProcessBuilder(
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                "-keyout", folder + "/key.pem", "-out", folder + "/cert.pem")
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    assertEquals(0, made.waitFor());
    return folder;
  }

  @Test
  void whileACertificateIsReplacedTheLastOneGoesOn() throws Exception {
    Path folder = certified();
    Path cert = folder.resolve("cert.pem");
    TlsOptions options = TlsOptions.trusting(cert).identity(cert, folder.resolve("key.pem"));
    Loop loop = new Loop();
    Channels channels = new Channels(loop, options);
    channels.open("localhost:1").shutdownNow();
    Files.writeString(cert, "half of");
    channels.open("localhost:1").shutdownNow();
    Files.delete(cert);
    channels.open("localhost:1").shutdownNow();
    assertThrows(TlsException.class, () -> new Channels(loop, options).open("localhost:1"));
    loop.close();
  }

  @Test
  void tlsChecksTheServer() throws Exception {
    Path folder = certified();
    Path cert = folder.resolve("cert.pem");
    Path key = folder.resolve("key.pem");
    String config = "[tls]\ncert = \"" + cert + "\"\nkey = \"" + key + "\"\n";
    try (Server server = new Server(folder, config)) {
      String address = "localhost:" + server.port;
      try (FilaClient right = FilaClient.builder().address(address).tls(TlsOptions.trusting(cert)).build()) {
        right.admin().createQueue("q");
        assertEquals(36, right.enqueue("q", Map.of(), new byte[1]).length());
      }
      Duration patience = Duration.ofSeconds(5);
      try (FilaClient stranger =
          FilaClient.builder().address(address).tls(TlsOptions.system()).timeout(patience).build()) {
        assertThrows(TlsException.class, () -> stranger.enqueue("q", Map.of(), new byte[1]));
      }
    }
  }
}

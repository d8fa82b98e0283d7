/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A real fila-server with a data folder of its own. It can be killed and started again at the same place. */
final class Server implements AutoCloseable {
  private static final int START_SECONDS = 30;

  final Path folder;
  final int port;
  private final String config;
  private Process process;

  Server(String config) throws IOException, InterruptedException {
    this(Files.createTempDirectory("fila-java-"), config);
  }

  /** For a configuration that names files in the folder. */
  Server(Path folder, String config) throws IOException, InterruptedException {
    this.folder = folder;
    this.config = config;
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
    start();
  }

  String address() {
    return "127.0.0.1:" + port;
  }

  FilaClient client() throws FilaException {
    return FilaClient.builder().address(address()).timeout(Duration.ofSeconds(20)).build();
  }

  void start() throws IOException, InterruptedException {
    Path file = folder.resolve("fila.toml");
    Files.writeString(file, "[log]\nlevel = \"warning\"\n" + config);
    process = run(program(), "--config", file.toString(), "--listen", address(), "--data-dir", folder + "/data");
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
    while (!answers()) {
      if (!process.isAlive() || System.nanoTime() > end) {
        throw new IOException("the server did not start: " + Files.readString(folder.resolve("log")));
      }
      Thread.sleep(50);
    }
  }

  void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  /** What a command prints. */
  String output(String... command) throws IOException, InterruptedException {
    List<String> all = new ArrayList<>(List.of(command));
    all.set(0, Path.of(program()).resolveSibling(command[0]).toString());
    Process made = new ProcessBuilder(all).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String printed = new String(made.getInputStream().readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
    if (made.waitFor() != 0) {
      throw new IOException("it failed: " + all);
    }
    return printed.strip();
  }

  private static String program() {
    String given = System.getenv("FILA_SERVER");
    return given == null || given.isEmpty() ? "../../.venv/bin/fila-server" : given;
  }

  private Process run(String... command) throws IOException {
    ProcessBuilder made = new ProcessBuilder(command).redirectErrorStream(true);
    made.environment().keySet().removeIf(name -> name.startsWith("FILA_"));
    return made.redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile())).start();
  }

  private boolean answers() {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress("127.0.0.1", port), 500);
      return true;
    } catch (IOException notYet) {
      return false;
    }
  }

  @Override
  public void close() throws IOException, InterruptedException {
    kill();
    try (Stream<Path> all = Files.walk(folder)) {
      all.sorted(Comparator.reverseOrder()).forEach(Server::delete);
    }
  }

  private static void delete(Path path) {
    try {
      Files.delete(path);
    } catch (IOException failed) {
      throw new UncheckedIOException(failed);
    }
  }
}

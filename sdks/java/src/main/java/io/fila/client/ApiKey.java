/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.Metadata;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;

/**
 * The API key of a client, or its token of an identity provider. A file is read again when it has changed, so a key is
 * rotated by replacing the file: streams that end with the old key come back with the new one.
 */
final class ApiKey {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final Path file;
  private FileTime readAt;
  private String value;

  private ApiKey(Path file, String value) {
    this.file = file;
    this.value = value;
  }

  static ApiKey of(String key) throws FilaException {
    return new ApiKey(null, checked(key, "apiKey"));
  }

  static ApiKey in(Path file) throws FilaException {
    ApiKey made = new ApiKey(file, null);
    try {
      made.read();
    } catch (IOException unreadable) {
      throw Errors.invalid("the API key cannot be read from " + file + ": " + unreadable);
    }
    return made;
  }

  /** Adds the key to what a call sends. */
  synchronized void addTo(Metadata headers) {
    if (file != null) {
      try {
        read();
      } catch (IOException | FilaException halfWritten) {
        // The last key that could be read goes on; the next call looks again.
      }
    }
    headers.put(AUTHORIZATION, "Bearer " + value);
  }

  private void read() throws IOException, FilaException {
    FileTime changed = Files.getLastModifiedTime(file);
    if (!changed.equals(readAt)) {
      value = checked(Files.readString(file, StandardCharsets.US_ASCII), file.toString());
      readAt = changed;
    }
  }

  private static String checked(String text, String where) throws FilaException {
    String key = text.strip();
    if (key.isEmpty() || !key.chars().allMatch(each -> each > ' ' && each < 127)) {
      throw Errors.invalid(where + " holds no API key or token: one line of printable ASCII");
    }
    return key;
  }
}

/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.driver;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.fila.client.FilaException;
import io.fila.client.UncheckedFilaException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The driver of the conformance suite: one JSON object a line in, one out. See sdks/conformance/DRIVER.md. */
public final class Driver {
  private Driver() {}

  /**
   * Answers requests until standard input ends.
   *
   * @param arguments none
   */
  public static void main(String[] arguments) throws IOException {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    ExecutorService requests = Executors.newCachedThreadPool(Driver::daemon);
    Operations operations = new Operations();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonObject request = JsonParser.parseString(line).getAsJsonObject();
      requests.execute(
          () -> {
            JsonObject answer = answer(operations, request);
            synchronized (out) {
              out.println(answer);
              out.flush();
            }
          });
    }
    operations.close();
  }

  private static Thread daemon(Runnable task) {
    Thread made = new Thread(task, "driver");
    made.setDaemon(true);
    return made;
  }

  private static JsonObject answer(Operations operations, JsonObject request) {
    JsonObject answer = new JsonObject();
    answer.add("id", request.get("id"));
    try {
      answer.add("ok", operations.run(new Request(request)));
    } catch (Exception failed) { // every error is an answer
      answer.add("error", described(failed));
    }
    return answer;
  }

  static JsonObject described(Throwable failed) {
    Throwable error = failed instanceof UncheckedFilaException wrapped ? wrapped.getCause() : failed;
    String kind = "INTERNAL";
    boolean retryable = false;
    if (error instanceof FilaException fila) {
      kind = fila.kind();
      retryable = fila.retryable();
    } else if (error instanceof UnsupportedOperationException) {
      kind = "UNSUPPORTED_OP";
    } else if (error instanceof java.util.concurrent.CancellationException) {
      kind = "CANCELLED";
    }
    JsonObject made = new JsonObject();
    made.addProperty("kind", kind);
    made.addProperty("type", error.getClass().getSimpleName());
    made.addProperty("message", String.valueOf(error.getMessage()));
    made.addProperty("retryable", retryable);
    return made;
  }

  static JsonArray array(Iterable<String> texts) {
    JsonArray made = new JsonArray();
    texts.forEach(made::add);
    return made;
  }

  static JsonObject object(String name, JsonElement value) {
    JsonObject made = new JsonObject();
    made.add(name, value);
    return made;
  }
}

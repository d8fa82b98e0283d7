/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.driver;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.fila.client.OutgoingMessage;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What the runner asks for. */
record Request(JsonObject given) {
  boolean has(String name) {
    return given.has(name) && !given.get(name).isJsonNull();
  }

  String text(String name) {
    return text(name, "");
  }

  String text(String name, String otherwise) {
    return has(name) ? given.get(name).getAsString() : otherwise;
  }

  int number(String name, int otherwise) {
    return has(name) ? given.get(name).getAsInt() : otherwise;
  }

  Duration millis(String name, long otherwise) {
    return Duration.ofMillis(has(name) ? given.get(name).getAsLong() : otherwise);
  }

  byte[] payload() {
    return Base64.getDecoder().decode(text("payload"));
  }

  Map<String, String> headers() {
    Map<String, String> made = new LinkedHashMap<>();
    if (has("headers")) {
      JsonObject headers = given.getAsJsonObject("headers");
      headers.keySet().forEach(name -> made.put(name, headers.get(name).getAsString()));
    }
    return made;
  }

  Request part(String name) {
    return new Request(has(name) ? given.getAsJsonObject(name) : new JsonObject());
  }

  List<Request> parts(String name) {
    List<Request> made = new ArrayList<>();
    for (JsonElement each : given.getAsJsonArray(name)) {
      made.add(new Request(each.getAsJsonObject()));
    }
    return made;
  }

  List<String> texts(String name) {
    List<String> made = new ArrayList<>();
    given.getAsJsonArray(name).forEach(each -> made.add(each.getAsString()));
    return made;
  }

  OutgoingMessage message(String queue) {
    OutgoingMessage.Builder made = OutgoingMessage.to(queue).headers(headers()).payload(payload());
    Request options = part("options");
    if (options.has("delay_ms")) {
      made.delay(options.millis("delay_ms", 0));
    }
    if (options.has("priority")) {
      made.priority(options.number("priority", 0));
    }
    if (options.has("dedup_key")) {
      made.dedupKey(options.text("dedup_key"));
    }
    return made.build();
  }
}

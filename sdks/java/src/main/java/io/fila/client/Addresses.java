/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.List;
import java.util.regex.Pattern;

/** Addresses of the form host:port; an IPv6 host is in brackets. They also come from servers. */
final class Addresses {
  private static final int MAX_PORT = 65_535;

  /** Of a name, by the rules of DNS, with room for a port. */
  private static final int MAX_LENGTH = 260;

  private static final Pattern PORT = Pattern.compile("[0-9]{1,5}");

  private Addresses() {}

  static boolean isValid(String address) {
    int colon = address.lastIndexOf(':');
    if (colon < 1 || address.length() > MAX_LENGTH || !PORT.matcher(address.substring(colon + 1)).matches()) {
      return false;
    }
    String host = address.substring(0, colon);
    int port = Integer.parseInt(address.substring(colon + 1));
    boolean bare = host.indexOf(':') >= 0 && !host.startsWith("[");
    try {
      URI read = new URI(null, null, host, port, null, null, null); // gRPC judges so too, with an exception
      return !bare && host.equals(read.getHost()) && port > 0 && port <= MAX_PORT;
    } catch (URISyntaxException noHost) {
      return false;
    }
  }

  static List<String> checked(List<String> given) throws FilaException {
    if (given.isEmpty()) {
      throw Errors.invalid("an address of the form host:port is needed");
    }
    for (String each : given) {
      if (!isValid(each)) {
        throw Errors.invalid("not an address of the form host:port: " + each);
      }
    }
    return List.copyOf(given);
  }
}

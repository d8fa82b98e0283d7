/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.ManagedChannel;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The servers of a client, and which of them has which queue. Belongs to the loop, but for the routes. */
final class Members {
  /** How many members in a row may name another one. */
  static final int MAX_HOPS = 4;

  /** Bounds the connections: the addresses that were given, and those that members named. */
  private static final int MAX_MEMBERS = 64;

  /** Bounds what is remembered of queues. Who is not remembered is asked for again. */
  private static final int MAX_ROUTES = 10_000;

  private final Loop loop;
  private final Settings settings;
  private final Channels channels;
  private final Map<String, Member> open = new HashMap<>();
  private final Map<String, String> routes = new ConcurrentHashMap<>();

  /** The addresses that routes lead to. Each has streams of its own. */
  private final Set<String> named = ConcurrentHashMap.newKeySet();

  private int current;
  private boolean closed;

  Members(Loop loop, Settings settings) {
    this.loop = loop;
    this.settings = settings;
    this.channels = new Channels(loop, settings.tls());
  }

  ApiKey key() {
    return settings.key();
  }

  /** The member at an address; an empty one means the member in use. */
  Member at(String address) throws FilaException {
    if (closed) {
      throw Errors.closed();
    }
    boolean inUse = address.isEmpty() || (!open.containsKey(address) && open.size() >= MAX_MEMBERS);
    String wanted = inUse ? settings.addresses().get(current) : address;
    return open.computeIfAbsent(wanted, each -> new Member(each, loop, channels));
  }

  /** The address that was named for a queue; empty when there is none. From any thread. */
  String route(String queue) {
    return routes.getOrDefault(queue, "");
  }

  /** A member has named the owner of a queue. From any thread. */
  void learn(String queue, String owner) {
    if (!Addresses.isValid(owner) || !isRoom(owner)) {
      return;
    }
    if (routes.size() >= MAX_ROUTES) {
      routes.clear();
    }
    routes.put(queue, owner);
  }

  private boolean isRoom(String owner) {
    return named.contains(owner) || (named.size() < MAX_MEMBERS && named.add(owner));
  }

  /** A member is lost or goes away: the next one takes over. */
  void leave(String address) {
    if (settings.addresses().get(current).equals(address)) {
      current = (current + 1) % settings.addresses().size();
    }
    routes.values().removeIf(address::equals);
  }

  List<ManagedChannel> close() {
    List<ManagedChannel> ended = new ArrayList<>();
    open.values().forEach(member -> ended.addAll(member.close()));
    open.clear();
    closed = true;
    return ended;
  }
}

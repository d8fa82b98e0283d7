/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.List;
import java.util.concurrent.Executor;

/** How a client was built. */
record Settings(List<String> addresses, TlsOptions tls, ApiKey key, int bufferBytes, Executor executor) {}

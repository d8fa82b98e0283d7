/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */

/**
 * The Java SDK of Fila, a durable message broker with fair scheduling. Begin with {@link io.fila.client.FilaClient}.
 */
package io.fila.client;

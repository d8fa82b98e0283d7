/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadmeTest {
  @Test
  void allFilesSayTheSameVersion() throws Exception {
    String element = "<artifactId>fila-client</artifactId>\\s*<version>(.*?)</version>";
    for (String file : new String[] {"pom.xml", "README.md"}) {
      Matcher found = Pattern.compile(element).matcher(Files.readString(Path.of(file)));
      assertTrue(found.find(), file);
      assertEquals(FilaClient.VERSION, found.group(1), file);
    }
  }

  @Test
  void theQuickstartRuns(@TempDir Path folder) throws Exception {
    String readme = Files.readString(Path.of("README.md"));
    Matcher block = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(readme);
    assertTrue(block.find());
    Path source = folder.resolve("Quickstart.java");
    Files.writeString(source, block.group(1));
    String path = Path.of("target/classes").toAbsolutePath() + ":" + Files.readString(Path.of("target/classpath"));
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    int code = ToolProvider.getSystemJavaCompiler().run(null, said, said, "-cp", path, source.toString());
    assertEquals(0, code, said::toString);
    try (Server server = new Server("");
        URLClassLoader made = new URLClassLoader(new URL[] {folder.toUri().toURL()}, getClass().getClassLoader())) {
      String[] arguments = {server.address()};
      made.loadClass("Quickstart").getMethod("main", String[].class).invoke(null, (Object) arguments);
      try (FilaClient client = server.client()) {
        assertEquals(0, client.admin().stats("orders").getSummary().getDepth());
      }
    }
  }
}

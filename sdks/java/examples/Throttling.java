import io.fila.client.ConsumeMessage;
import io.fila.client.FilaClient;
import io.fila.client.FilaConsumer;
import io.fila.client.QueueAlreadyExistsException;
import io.fila.v1.HeaderNames;
import io.fila.v1.QueueConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A limit for each provider: who has no tokens waits, and nobody waits behind it. */
public class Throttling {
  private static final String QUEUE = "example-throttling";

  public static void main(String[] arguments) throws Exception {
    String address = System.getenv().getOrDefault("FILA_ADDR", "localhost:5555");
    try (FilaClient client = FilaClient.builder().address(address).build()) {
      // A message with the header "provider: slow" has the throttle key "provider:slow".
      HeaderNames headers = HeaderNames.newBuilder().addNames("provider").build();
      try {
        client.admin().createQueue(QUEUE, QueueConfig.newBuilder().setThrottleHeaders(headers).build());
      } catch (QueueAlreadyExistsException exists) {
        System.err.println("using the queue that is there");
      }
      client.admin().setThrottle("provider:slow", 0.01, 1);
      System.out.println("provider slow: one message now, the next in 100 seconds");

      for (String provider : List.of("slow", "fast")) {
        for (int number = 1; number <= 3; number++) {
          client.enqueue(QUEUE, Map.of("provider", provider), (provider + "-" + number).getBytes());
        }
      }

      try (FilaConsumer consumer = client.consume(QUEUE)) {
        System.out.println("delivered: " + take(consumer, 4));
        client.admin().removeThrottle("provider:slow");
        System.out.println("without the limit: " + take(consumer, 2));
      }

      client.admin().deleteQueue(QUEUE, true);
    }
  }

  private static String take(FilaConsumer consumer, int count) throws Exception {
    List<String> taken = new ArrayList<>();
    while (taken.size() < count) {
      ConsumeMessage message = consumer.take();
      taken.add(new String(message.payload()));
      message.ack();
    }
    return String.join(" ", taken);
  }
}

import io.fila.client.ConsumeMessage;
import io.fila.client.FilaClient;
import io.fila.client.FilaConsumer;
import io.fila.client.OutgoingMessage;
import io.fila.client.QueueAlreadyExistsException;
import io.fila.v1.QueueConfig;
import java.util.ArrayList;
import java.util.List;

/** One queue for many tenants: a flood of one does not delay the others. */
public class FairScheduling {
  private static final String QUEUE = "example-fairness";

  // The broker asks this script for the fairness key of each message. The setting fairness_header would do too.
  private static final String SCRIPT =
      """
      function on_enqueue(msg)
        return { fairness_key = msg.headers.tenant }
      end
      """;

  public static void main(String[] arguments) throws Exception {
    String address = System.getenv().getOrDefault("FILA_ADDR", "localhost:5555");
    try (FilaClient client = FilaClient.builder().address(address).build()) {
      QueueConfig config = QueueConfig.newBuilder().setOnEnqueue(SCRIPT).setQuantum(1).build();
      try {
        client.admin().createQueue(QUEUE, config);
      } catch (QueueAlreadyExistsException exists) {
        System.err.println("using the queue that is there");
      }

      List<OutgoingMessage> messages = new ArrayList<>();
      for (int number = 0; number < 102; number++) {
        messages.add(OutgoingMessage.to(QUEUE).header("tenant", number < 100 ? "bulk" : "acme").build());
      }
      client.enqueueMany(messages);
      System.out.println("enqueued 100 messages of bulk, then 2 of acme");

      List<String> delivered = new ArrayList<>();
      try (FilaConsumer consumer = client.consume(QUEUE)) {
        while (delivered.size() < 6) {
          ConsumeMessage message = consumer.take();
          delivered.add(message.fairnessKey());
          message.ack();
        }
      }
      System.out.println("delivered: " + String.join(" ", delivered));

      client.admin().deleteQueue(QUEUE, true);
    }
  }
}

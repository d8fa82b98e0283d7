import io.fila.client.ConsumeMessage;
import io.fila.client.FilaClient;
import io.fila.client.FilaConsumer;
import io.fila.client.QueueAlreadyExistsException;
import io.fila.v1.FailedAttempt;
import io.fila.v1.Message;
import io.fila.v1.PeekRequest;
import io.fila.v1.PeekedMessage;
import io.fila.v1.QueueConfig;
import java.util.List;
import java.util.Map;

/** What fails too often becomes a dead letter, and goes back when it is mended. */
public class DeadLetters {
  private static final String QUEUE = "example-letters";
  private static final String LETTERS = QUEUE + ".dlq";

  public static void main(String[] arguments) throws Exception {
    String address = System.getenv().getOrDefault("FILA_ADDR", "localhost:5555");
    try (FilaClient client = FilaClient.builder().address(address).build()) {
      try {
        client.admin().createQueue(QUEUE, QueueConfig.newBuilder().setMaxAttempts(2).build());
      } catch (QueueAlreadyExistsException exists) {
        System.err.println("using the queue that is there");
      }
      client.enqueue(QUEUE, Map.of(), "broken".getBytes());

      try (FilaConsumer consumer = client.consume(QUEUE)) {
        for (int attempt = 1; attempt <= 2; attempt++) {
          ConsumeMessage message = consumer.take();
          System.out.println("attempt " + (message.attemptCount() + 1) + " fails");
          message.nack("cannot be read");
        }

        PeekRequest request = PeekRequest.newBuilder().setQueue(LETTERS).setPayloadBytes(100).build();
        for (PeekedMessage letter : client.admin().peek(request).getMessagesList()) {
          Message message = letter.getMessage();
          List<FailedAttempt> attempts = message.getMetadata().getDeadLetter().getAttemptsList();
          String error = attempts.get(attempts.size() - 1).getError();
          System.out.printf(
              "dead letter: %s, %d attempts, the last: %s%n",
              message.getPayload().toStringUtf8(), attempts.size(), error);
        }

        System.out.println("back in the queue: " + client.admin().redrive(LETTERS));
        ConsumeMessage message = consumer.take();
        System.out.println("delivered: " + new String(message.payload()));
        message.ack();
      }

      client.admin().deleteQueue(QUEUE, true);
    }
  }
}

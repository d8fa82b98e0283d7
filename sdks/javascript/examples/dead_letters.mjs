// What fails too often becomes a dead letter, and goes back when it is mended.
import { Client } from '@fila/client';

const QUEUE = 'example-letters';

const client = new Client(process.env.FILA_ADDR ?? 'localhost:5555');
await client.ensureQueue(QUEUE, { maxAttempts: 2 });
await client.enqueue(QUEUE, {}, 'broken');

for await (const message of client.consume(QUEUE)) {
  console.log(`attempt ${message.attemptCount + 1} fails`);
  await message.nack('cannot be read');
  if (message.attemptCount + 1 === 2) break;
}

const page = await client.peek(`${QUEUE}.dlq`, { payloadBytes: 100 });
for (const { payload, deadLetter } of page.messages) {
  const { attempts } = deadLetter;
  console.log(`dead letter: ${payload}, ${attempts.length} attempts, the last: ${attempts.at(-1).error}`);
}

console.log('back in the queue:', await client.redrive(`${QUEUE}.dlq`));
for await (const message of client.consume(QUEUE)) {
  console.log('delivered:', message.payload.toString());
  await message.ack();
  break;
}

await client.deleteQueue(QUEUE, { force: true });
await client.close();

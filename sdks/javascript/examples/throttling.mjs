// A limit for each provider: who has no tokens waits, and nobody waits behind it.
import { Client } from '@fila/client';

const QUEUE = 'example-throttling';

const client = new Client(process.env.FILA_ADDR ?? 'localhost:5555');
// A message with the header "provider: slow" has the throttle key "provider:slow".
await client.ensureQueue(QUEUE, { throttleHeaders: ['provider'] });
await client.setThrottle('provider:slow', { rate: 0.01, burst: 1 });
console.log('provider slow: one message now, the next in 100 seconds');

for (const provider of ['slow', 'fast']) {
  for (const number of [1, 2, 3]) await client.enqueue(QUEUE, { provider }, `${provider}-${number}`);
}

const consumer = client.consume(QUEUE);
const take = async (count) => {
  const taken = [];
  while (taken.length < count) {
    const { value: message } = await consumer.next();
    taken.push(message.payload.toString());
    await message.ack();
  }
  return taken.join(' ');
};
console.log('delivered:', await take(4));
await client.removeThrottle('provider:slow');
console.log('without the limit:', await take(2));

await consumer.stop();
await client.deleteQueue(QUEUE, { force: true });
await client.close();

// One queue for many tenants: a flood of one does not delay the others.
import { Client } from '@fila/client';

const QUEUE = 'example-fairness';
// The broker asks this script for the fairness key of each message. The setting fairnessHeader would do too.
const SCRIPT = `
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant }
end
`;

const client = new Client(process.env.FILA_ADDR ?? 'localhost:5555');
await client.ensureQueue(QUEUE, { onEnqueue: SCRIPT, quantum: 1 });

const messages = (tenant, count) => Array.from({ length: count }, () => ({ headers: { tenant } }));
await client.enqueueMany(QUEUE, [...messages('bulk', 100), ...messages('acme', 2)]);
console.log('enqueued 100 messages of bulk, then 2 of acme');

const tenants = [];
for await (const message of client.consume(QUEUE)) {
  tenants.push(message.fairnessKey);
  await message.ack();
  if (tenants.length === 6) break;
}
console.log('delivered:', tenants.join(' '));

await client.deleteQueue(QUEUE, { force: true });
await client.close();

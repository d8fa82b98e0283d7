# frozen_string_literal: true

# One queue for many tenants: a flood of one does not delay the others.

require 'fila'

QUEUE = 'example-fairness'
# The broker asks this script for the fairness key of each message. The setting fairness_header would do too.
SCRIPT = <<~LUA
  function on_enqueue(msg)
    return { fairness_key = msg.headers.tenant }
  end
LUA

Fila::Client.open(ENV.fetch('FILA_ADDR', 'localhost:5555')) do |client|
  client.ensure_queue(queue: QUEUE, on_enqueue: SCRIPT, quantum: 1)

  tenants = (['bulk'] * 100) + (['acme'] * 2)
  client.enqueue_many(queue: QUEUE, messages: tenants.map { |tenant| { headers: { 'tenant' => tenant } } })
  puts 'enqueued 100 messages of bulk, then 2 of acme'

  delivered = []
  client.consume(queue: QUEUE) do |message|
    delivered << message.fairness_key
    message.ack
    break if delivered.size == 6
  end
  puts "delivered: #{delivered.join(' ')}"

  client.delete_queue(queue: QUEUE, force: true)
end

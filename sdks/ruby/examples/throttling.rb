# frozen_string_literal: true

# A limit for each provider: who has no tokens waits, and nobody waits behind it.

require 'fila'

QUEUE = 'example-throttling'

def take(consumer, count)
  Array.new(count) { consumer.pop.tap(&:ack).payload }.join(' ')
end

Fila::Client.open(ENV.fetch('FILA_ADDR', 'localhost:5555')) do |client|
  # A message with the header "provider: slow" has the throttle key "provider:slow".
  client.ensure_queue(queue: QUEUE, throttle_headers: ['provider'])
  client.set_throttle(key: 'provider:slow', rate: 0.01, burst: 1)
  puts 'provider slow: one message now, the next in 100 seconds'

  %w[slow fast].product([1, 2, 3]).each do |provider, number|
    client.enqueue(queue: QUEUE, headers: { 'provider' => provider }, payload: "#{provider}-#{number}")
  end

  consumer = client.consume(queue: QUEUE)
  puts "delivered: #{take(consumer, 4)}"
  client.remove_throttle(key: 'provider:slow')
  puts "without the limit: #{take(consumer, 2)}"
  consumer.stop

  client.delete_queue(queue: QUEUE, force: true)
end

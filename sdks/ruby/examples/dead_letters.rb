# frozen_string_literal: true

# What fails too often becomes a dead letter, and goes back when it is mended.

require 'fila'

QUEUE = 'example-letters'

Fila::Client.open(ENV.fetch('FILA_ADDR', 'localhost:5555')) do |client|
  client.ensure_queue(queue: QUEUE, max_attempts: 2)
  client.enqueue(queue: QUEUE, payload: 'broken')

  client.consume(queue: QUEUE) do |message|
    puts "attempt #{message.attempt_count + 1} fails"
    message.nack(error: 'cannot be read')
    break if message.attempt_count + 1 == 2
  end

  client.peek(queue: "#{QUEUE}.dlq", payload_bytes: 100).each do |letter|
    attempts = letter.message.metadata.dead_letter.attempts
    puts "dead letter: #{letter.message.payload}, #{attempts.size} attempts, the last: #{attempts.to_a.last.error}"
  end

  puts "back in the queue: #{client.redrive(dlq: "#{QUEUE}.dlq")}"
  client.consume(queue: QUEUE) do |message|
    puts "delivered: #{message.payload}"
    message.ack
    break
  end

  client.delete_queue(queue: QUEUE, force: true)
end

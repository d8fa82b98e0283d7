# frozen_string_literal: true

require 'test_helper'

class SettleCodecTest < FilaTest
  V1 = Fila::V1

  def setup
    @codec = Fila::SettleCodec.new
  end

  def test_settlements_of_several_callers_travel_together
    batch = @codec.make_batch([settle(:ack, 'a'), settle(:ack, 'b'), settle(:nack, 'c'), settle(:release, 'd'),
                               settle(:reject, 'e'), settle(:extend, 'f')], 'host:1')
    request = V1::SettleRequest.decode(batch.data)

    assert_equal [%w[a b]], (request.acks.map { |group| group.message_ids.to_a })
    assert_equal [['c', false, false], ['d', true, false], ['e', false, true]],
                 (request.nacks.map { |nack| [nack.message_id, nack.release, nack.dead_letter] })
    assert_equal [%w[f]], (request.extends.map { |group| group.message_ids.to_a })
  end

  def test_no_request_names_a_message_twice
    gathered = [settle(:extend, 'a'), settle(:ack, 'a'), settle(:ack, 'b')]

    assert_equal 1, @codec.make_batch(gathered, 'host:1').waiters.size
    assert_equal 2, @codec.make_batch(gathered, 'host:1').waiters.size
  end

  def test_an_ack_that_was_sent_again_and_is_gone_was_carried_out
    assert_empty outcome(:ack, :MESSAGE_GONE, resent: true)
  end

  def test_every_other_refusal_is_told
    [[:ack, :MESSAGE_GONE, false], [:ack, :LEASE_ENDED, true], [:ack, :MESSAGE_NOT_FOUND, true],
     [:nack, :MESSAGE_GONE, true], [:extend, :MESSAGE_GONE, true]].each do |action, kind, resent|
      assert_equal kind, outcome(action, kind, resent: resent).values.first&.kind, [action, kind, resent].inspect
    end
  end

  # An answer names messages in UTF-8, whatever encoding the caller has.
  def test_a_refusal_is_told_in_whatever_encoding_the_queue_was_named
    named = settlement(:ack, 'a', queue: 'qä'.encode('ISO-8859-1')).check
    caller = Fila::Settle.new([named], now + 60)
    failure = V1::SettleFailure.new(queue: 'qä', message_id: 'a', error: V1::Error.new(kind: :ERROR_KIND_LEASE_ENDED))
    @codec.answer(@codec.make_batch([caller], 'host:1'), V1::SettleResponse.new(failures: [failure]))

    assert_equal :LEASE_ENDED, caller.result { flunk }.values.first&.kind
  end

  def test_a_refused_request_fails_all_its_callers
    callers = [settle(:ack, 'a'), settle(:ack, 'b')]
    batch = @codec.make_batch(callers.dup, 'host:1')
    @codec.answer(batch, V1::SettleResponse.new(sequence: 1, error: V1::Error.new(kind: :ERROR_KIND_OVERLOADED)))

    callers.each { |caller| assert_raises(Fila::OverloadedError) { caller.result { flunk } } }
  end

  def test_wrong_arguments_never_reach_the_stream
    assert_raises(Fila::InvalidArgumentError) { settlement(:ack, nil).check }
    assert_raises(Fila::InvalidArgumentError) { settlement(:ack, "\xFF").check }
    assert_raises(Fila::InvalidArgumentError) { settlement(:nack, 'a', delay_ms: -1).check }
    assert_raises(Fila::InvalidArgumentError) { settlement(:nack, 'a', delay_ms: 1.5).check }
  end

  def test_the_text_of_an_error_may_hold_any_bytes
    assert_equal 'oh ?', settlement(:nack, 'a', error: "oh \xFF".b).check.error.sub("\uFFFD", '?')
    assert_equal 'oh ?', settlement(:nack, 'a', error: "oh \xFF").check.error.sub("\uFFFD", '?')
  end

  private

  def settlement(action, id, **fields)
    Fila::Settlement.new(action: action, queue: 'q', lease_id: 'l', message_ids: [id], error: '', delay_ms: 0,
                         **fields)
  end

  def settle(action, id)
    Fila::Settle.new([settlement(action, id)], now + 60)
  end

  def outcome(action, kind, resent:)
    caller = settle(action, 'a')
    batch = @codec.make_batch([caller], 'host:1')
    batch.resent = resent
    failure = V1::SettleFailure.new(queue: 'q', message_id: 'a', error: V1::Error.new(kind: :"ERROR_KIND_#{kind}"))
    @codec.answer(batch, V1::SettleResponse.new(failures: [failure]))
    caller.result { flunk }
  end
end

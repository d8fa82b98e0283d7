# frozen_string_literal: true

require 'test_helper'

class TextTest < FilaTest
  def test_a_text_is_utf_8_or_can_be
    ['', 'café', 'café'.encode('ISO-8859-1'), 'plain'.b, 'plain'.encode('UTF-16')].each do |text|
      assert_equal [text.encode('UTF-8'), Encoding::UTF_8], [Fila::Text.check(text), Fila::Text.check(text).encoding]
    end
    [nil, 5, :text, "\xFF", "caf\xE9".b].each do |wrong|
      assert_raises(Fila::InvalidArgumentError, wrong.inspect) { Fila::Text.check(wrong) }
    end
  end

  def test_all_texts_of_a_field_are_checked
    assert Fila::Text.check_all([1, nil, 'a', { 'b' => ['c'] }])
    [['a', "\xFF"], { "\xFF" => 'a' }, { 'a' => ["\xFF"] }].each do |wrong|
      assert_raises(Fila::InvalidArgumentError, wrong.inspect) { Fila::Text.check_all(wrong) }
    end
  end

  def test_a_text_for_people_may_hold_anything
    { 'café' => 'café', 'café'.b => 'café', "a\xFFb".b => "a\uFFFDb", "a\xFFb" => "a\uFFFDb",
      'café'.encode('ISO-8859-1') => 'café', nil => '', 'odd'.dup.force_encoding('UTF-7') => 'odd' }
      .each do |given, cleaned|
        assert_equal [cleaned, Encoding::UTF_8], [Fila::Text.cleaned(given), Fila::Text.cleaned(given).encoding]
      end
  end
end

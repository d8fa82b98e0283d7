# frozen_string_literal: true

require 'test_helper'

class ApiKeyTest < FilaTest
  def test_is_sent_as_a_bearer_token_and_never_shown
    key = Fila::ApiKey.new(" fila_a_b\n", nil)

    assert_equal({ 'authorization' => 'Bearer fila_a_b' }, key.metadata)
    refute_includes key.inspect, 'fila_a_b'
    refute_includes Fila::Client.new('localhost:1', api_key: 'fila_a_b').inspect, 'fila_a_b'
  end

  def test_without_a_key_nothing_is_sent
    assert_empty Fila::ApiKey.new(nil, nil).metadata
  end

  def test_a_file_is_read_again_when_it_has_changed
    Dir.mktmpdir do |folder|
      file = File.join(folder, 'key')
      File.write(file, 'one')
      key = Fila::ApiKey.new(nil, file)
      File.write(file, 'second')

      assert_equal 'Bearer second', key.metadata['authorization']
      File.delete(file)
      assert_equal 'Bearer second', key.metadata['authorization']
    end
  end

  # Whoever replaces a key may empty the file first.
  def test_while_the_file_holds_no_key_the_last_one_is_sent
    Dir.mktmpdir do |folder|
      file = File.join(folder, 'key')
      File.write(file, 'one')
      key = Fila::ApiKey.new(nil, file)
      ['', "half a\nkey", "\xFF\xFE".b].each do |damaged|
        File.binwrite(file, damaged)
        assert_equal 'Bearer one', key.metadata['authorization'], damaged.inspect
      end
      File.write(file, 'another')

      assert_equal 'Bearer another', key.metadata['authorization']
    end
  end

  def test_a_variable_of_the_environment_that_is_empty_is_not_set
    assert_empty Fila::ApiKey.find(nil, nil, { 'FILA_API_KEY' => '', 'FILA_API_KEY_FILE' => '' }).metadata
    both = { 'FILA_API_KEY' => 'fila_a_b', 'FILA_API_KEY_FILE' => '/nowhere/key' }

    assert_equal 'Bearer fila_a_b', Fila::ApiKey.find(nil, nil, both).metadata['authorization']
    assert_equal 'Bearer given', Fila::ApiKey.find('given', nil, both).metadata['authorization']
  end

  def test_refuses_what_is_no_key
    [5, :key, "\xFF\xFE", 'schlüssel'].each do |wrong|
      assert_raises(Fila::InvalidArgumentError, wrong.inspect) { Fila::ApiKey.new(wrong, nil) }
    end
    assert_raises(Fila::InvalidArgumentError) { Fila::ApiKey.new(nil, 5) }
    assert_raises(Fila::InvalidArgumentError) { Fila::ApiKey.new("two\nlines", nil) }
    assert_raises(Fila::InvalidArgumentError) { Fila::ApiKey.new('', nil) }
    assert_raises(Fila::InvalidArgumentError) { Fila::ApiKey.new(nil, '/nowhere/key') }
    assert_raises(Fila::InvalidArgumentError) { Fila::ApiKey.new('a', 'b') }
  end
end

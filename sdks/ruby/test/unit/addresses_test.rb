# frozen_string_literal: true

require 'test_helper'

class AddressesTest < FilaTest
  def test_takes_a_list_or_a_text
    assert_equal 'a:1', Fila::Addresses.new('a:1, b:2').current
    assert_equal '[::1]:5555', Fila::Addresses.new(['[::1]:5555']).current
  end

  def test_refuses_what_is_no_address
    ['', 'host', 'host:', ':5555', '::1:5555', [], 'a:0', 'a:65536', 'a b:1', 'unix:/run/x:1', 'dns:///a:1', "a\xFF:1",
     "a:1\nb:2"].each do |given|
      assert_raises(Fila::InvalidArgumentError, given.inspect) { Fila::Addresses.new(given) }
    end
  end

  def test_goes_to_the_next_one_when_one_is_lost_and_round_again
    addresses = Fila::Addresses.new('a:1,b:2')
    addresses.leave('a:1')

    assert_equal 'b:2', addresses.current
    addresses.leave('b:2')
    assert_equal 'a:1', addresses.current
  end

  def test_two_that_lost_the_same_address_move_on_once
    addresses = Fila::Addresses.new('a:1,b:2,c:3')
    2.times { addresses.leave('a:1') }

    assert_equal 'b:2', addresses.current
  end

  def test_an_owner_is_current_until_it_is_lost
    addresses = Fila::Addresses.new('a:1,b:2')
    addresses.follow('z:9')
    addresses.leave('a:1')

    assert_equal 'z:9', addresses.current
    addresses.leave('z:9')
    assert_equal 'a:1', addresses.current
  end

  def test_what_is_no_address_is_not_followed
    addresses = Fila::Addresses.new('a:1')
    ['', 'unix:/run/x', 'a', 'dns:///evil:1', "b\xFF:1", 'b:99999'].each do |odd|
      addresses.follow(odd)
      assert_equal 'a:1', addresses.current, odd
    end
  end
end

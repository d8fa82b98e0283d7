# frozen_string_literal: true

require 'fileutils'
require 'socket'
require 'tmpdir'

# A fila-server process with a folder and a port of its own.
class FilaServer
  PROGRAM = File.expand_path(ENV.fetch('FILA_SERVER', '../../.venv/bin/fila-server'))
  STARTS_WITHIN = 30

  attr_reader :address, :folder

  # One for all tests that need nothing special.
  def self.shared
    @shared ||= new.start
  end

  def self.stop_shared
    @shared&.stop
  end

  def self.free_port
    TCPServer.open('127.0.0.1', 0) { |server| server.addr[1] }
  end

  # A server for the time of the block.
  def self.run(**options)
    server = new(**options)
    begin
      yield server.start
    ensure
      server.stop
    end
  end

  def initialize(config: '', host: '127.0.0.1')
    @folder = Dir.mktmpdir('fila-ruby-')
    @port = self.class.free_port
    @address = "#{host}:#{@port}"
    File.write(File.join(@folder, 'fila.toml'), "[log]\nlevel = \"warning\"\n#{config}")
  end

  def start
    @pid = Process.spawn(PROGRAM, '--config', 'fila.toml', '--listen', "127.0.0.1:#{@port}", '--data-dir', 'data',
                         chdir: @folder, out: log, err: log)
    wait_until_it_listens
    self
  end

  def kill
    finish(:KILL)
  end

  def terminate
    finish(:TERM)
  end

  def stop
    finish(:KILL)
    FileUtils.remove_entry(@folder)
  end

  private

  def log
    [File.join(@folder, 'log'), 'a']
  end

  def finish(signal)
    return unless @pid

    Process.kill(signal, @pid)
    Process.wait(@pid)
    @pid = nil
  end

  def wait_until_it_listens
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + STARTS_WITHIN
    begin
      TCPSocket.new('127.0.0.1', @port).close
    rescue Errno::ECONNREFUSED
      late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
      raise "the server does not start:\n#{File.read(log.first)}" if late || Process.wait(@pid, Process::WNOHANG)

      sleep 0.02
      retry
    end
  end
end
